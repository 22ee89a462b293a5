package approve

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	certificatesv1 "k8s.io/api/certificates/v1"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"

	"github.com/spokelet/spokelet/csr"
)

// builtInSigners are the signers of Kubernetes, and names that look like them.
var builtInSigners = []string{
	certificatesv1.KubeAPIServerClientSignerName, certificatesv1.KubeAPIServerClientKubeletSignerName,
	certificatesv1.KubeletServingSignerName, "kubernetes.io/legacy-unknown", "kubernetes.io/kube-apiserver-serving",
	"kubernetes.io/anything-new", "sub.kubernetes.io/x", "k8s.io/x", "node.k8s.io/x", "coordination.k8s.io/pods",
	"Kubernetes.io/kube-apiserver-client", " kubernetes.io/kube-apiserver-client", "open-cluster-management.io/grpc",
	"kubernetes.io", "/kube-apiserver-client", "example.com/", "",
}

func TestCheckCustomSigner(t *testing.T) {
	for _, signer := range builtInSigners {
		require.Error(t, CheckCustomSigner(signer), signer)
	}
	for _, signer := range []string{
		"example.com/signer-test", "notkubernetes.io/x", "kubernetes.io.example.com/x", "mykubernetes.io/x",
		"open-cluster-management.io/proxy-agent-signer", "example.com/kubernetes.io/x",
	} {
		assert.NoError(t, CheckCustomSigner(signer), signer)
	}
}

func TestCheckCustomSubject(t *testing.T) {
	tests := map[string]struct {
		subject addonv1beta1.Subject
		says    string
	}{
		"no subject is that of the add-on":     {subject: subjectOf("", nil, nil)},
		"names of the author's own can be had": {subject: subjectOf("user-test", []string{"group-test"}, []string{"unit"})},
		"so can the identity of the add-on": {
			subject: subjectOf(csr.AddonUser("c1", "a", "a-agent"), csr.AddonGroups("c1", "a"), nil),
		},
		"a controller of Kubernetes is no add-on": {
			subjectOf("system:kube-controller-manager", nil, nil), `user "system:kube-controller-manager"`,
		},
		"nor is a node":                 {subjectOf("system:node:n", nil, nil), "system:node:n"},
		"nor is the agent of a cluster": {subjectOf(csr.ClusterUser("c1", "x"), nil, nil), csr.ClusterUser("c1", "x")},
		"nor is another add-on on this cluster": {
			subjectOf(csr.AddonUser("c1", "b", "b-agent"), nil, nil), "addon:b",
		},
		"nor is the add-on on another cluster": {
			subjectOf(csr.AddonUser("c2", "a", "a-agent"), nil, nil), "cluster:c2",
		},
		"system:masters is no group of an add-on":     {subjectOf("u", []string{"g", "system:masters"}, nil), "system:masters"},
		"nor is that of all clusters":                 {subjectOf("u", []string{csr.GroupManagedClusters}, nil), "managed-clusters"},
		"an organizational unit is not of Kubernetes": {subjectOf("u", nil, []string{"system:masters"}), "organizational unit"},
	}
	for sentence, tc := range tests {
		t.Run(sentence, func(t *testing.T) {
			err := CheckCustomSubject("c1", "a", tc.subject)
			if tc.says == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, tc.says)
			require.ErrorContains(t, err, "leave the subject out")
		})
	}
}

func subjectOf(user string, groups, units []string) addonv1beta1.Subject {
	return addonv1beta1.Subject{
		BaseSubject: addonv1beta1.BaseSubject{User: user, Groups: groups}, OrganizationUnits: units,
	}
}

// Whatever a definition comes to, by a mistake of ours too, no request for a built-in signer with a subject of the
// author's choice is approved.
func TestNoDefinitionGetsAnIdentityOfTheHub(t *testing.T) {
	for _, signer := range builtInSigners {
		for _, user := range []string{"system:kube-controller-manager", "admin", csr.ClusterUser("c1", "agent1")} {
			registration := customRegistration(user, []string{"x"}, nil)
			registration.CustomSigner.SignerName = signer
			registrations := []addonv1beta1.RegistrationConfig{registration}
			asked, err := csr.ForAddon("c1", "a", registration)
			if err != nil {
				continue
			}
			request := newRequest(t, asked, csr.ClusterUser("c1", "agent1"))
			assertNotApproved(t, JudgeAddon(request, registrations), reasonIdentityNotOwn)
			assertNotApproved(t, JudgeAddonContent(request, registrations), reasonIdentityNotOwn)
		}
	}
	t.Run("nor through a registration of type kubeClient", func(t *testing.T) {
		own := kubeClient("c1", "a")
		own.KubeClient.Subject.User = "system:kube-controller-manager"
		asked := forAddon(t, "c1", "a", own)
		v := JudgeAddon(newRequest(t, asked, csr.ClusterUser("c1", "agent1")), []addonv1beta1.RegistrationConfig{own})
		assertNotApproved(t, v, reasonIdentityNotOwn)
		assert.Contains(t, v.Message, "system:kube-controller-manager")
	})
}
