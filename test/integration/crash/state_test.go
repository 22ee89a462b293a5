package crash_test

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/csr"
	"github.com/spokelet/spokelet/csr/issue"
	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/test/sandbox/fleet"
)

// state is all that an agent leaves behind, without what differs from run to run. Two runs that end in the same state
// are equal.
type state struct {
	// Secrets are the Secrets in the namespaces of agent and add-on: the keys that each holds, in order.
	Secrets map[string][]string
	// Requests counts the certificate requests by add-on label and signer.
	Requests map[string]int
	// Conditions are those of the ManagedCluster and of the add-on, with status and reason.
	Conditions map[string]string
}

// end reads the state; it returns the differences to the end that every path must reach: a certificate that is missing,
// due or not the one that the hub issued, a request that waits, a key that waits.
func (s *soul) end(ctx context.Context) (state, error) {
	end := state{Secrets: map[string][]string{}, Requests: map[string]int{}, Conditions: map[string]string{}}
	all, err := requests(ctx, s.name)
	if err != nil {
		return end, err
	}
	issued := map[string][]byte{}
	for _, request := range all {
		owner := request.Labels[names.LabelAddonName] + " " + request.Spec.SignerName
		end.Requests[owner]++
		if len(request.Status.Certificate) == 0 {
			return end, fleet.NotYet("certificate request %s waits", request.Name)
		}
		issued[owner+string(request.Status.Certificate)] = request.Status.Certificate
	}
	if err := s.readSecrets(ctx, end.Secrets); err != nil {
		return end, err
	}
	for _, want := range s.wanted() {
		if err := s.holds(ctx, want, issued); err != nil {
			return end, err
		}
	}
	return end, s.readConditions(ctx, end.Conditions)
}

// credential is a credential that must be there in the end.
type credential struct {
	namespace, secret string
	request           csr.Request
}

func (s *soul) wanted() []credential {
	addon := csr.Request{
		Signer: certificatesv1.KubeAPIServerClientSignerName,
		Labels: map[string]string{names.LabelClusterName: s.name, names.LabelAddonName: addonName},
		User:   csr.AddonUser(s.name, addonName, addonName), Groups: csr.AddonGroups(s.name, addonName),
	}
	custom := addon
	custom.Signer = signer
	id := csr.Identity{Cluster: s.name, Agent: s.agentName()}
	return []credential{
		{s.agentNamespace(), names.SecretHub, csr.ForCluster(id.Cluster, id.Agent)},
		{s.addonNamespace(), addonName + "-hub-kubeconfig", addon},
		{s.addonNamespace(), addonName + "-crash.example.com-signer-client-cert", custom},
	}
}

// agentName is the name that the agent drew for itself; empty as long as it has none.
func (s *soul) agentName() string {
	var secret corev1.Secret
	if err := s.spoke.Get(s.t.Context(), key(s.agentNamespace(), names.SecretHub), &secret); err != nil {
		return ""
	}
	return string(secret.Data[csr.KeyAgentName])
}

// holds reports whether a Secret holds a good credential that the hub issued for a request of this agent.
func (s *soul) holds(ctx context.Context, want credential, issued map[string][]byte) error {
	var secret corev1.Secret
	if err := s.spoke.Get(ctx, key(want.namespace, want.secret), &secret); err != nil {
		return err
	}
	verdict := issue.JudgePair(issue.PairOf(&secret), want.request, time.Now())
	if !verdict.Fits {
		return fleet.NotYet("%s: %s", want.secret, verdict.Why)
	}
	if verdict.Due(time.Now()) {
		return fleet.NotYet("%s is to be replaced", want.secret)
	}
	owner := want.request.Labels[names.LabelAddonName] + " " + want.request.Signer
	if !bytes.Equal(issued[owner+string(secret.Data[csr.KeyCertificate])], secret.Data[csr.KeyCertificate]) {
		return fleet.NotYet("%s holds a certificate that no request of this agent led to", want.secret)
	}
	return nil
}

func (s *soul) readSecrets(ctx context.Context, into map[string][]string) error {
	for _, namespace := range []string{s.agentNamespace(), s.addonNamespace()} {
		var list corev1.SecretList
		if err := s.spoke.List(ctx, &list, client.InNamespace(namespace)); err != nil {
			return err
		}
		for i := range list.Items {
			secret := &list.Items[i]
			if secret.Labels[names.LabelCredential] == names.CredentialPending && len(secret.Data[csr.KeyPrivateKey]) > 0 {
				return fleet.NotYet("key %s waits for its certificate", secret.Name)
			}
			into[secret.Name] = slices.Sorted(maps.Keys(secret.Data))
		}
	}
	return nil
}

func (s *soul) readConditions(ctx context.Context, into map[string]string) error {
	var cluster clusterv1.ManagedCluster
	if err := s.hub.Get(ctx, key("", s.name), &cluster); err != nil {
		return err
	}
	var addon addonv1alpha1.ManagedClusterAddOn
	if err := s.hub.Get(ctx, key(s.name, addonName), &addon); err != nil {
		return err
	}
	for owner, conditions := range map[string][]metav1.Condition{
		"cluster": cluster.Status.Conditions, "add-on": addon.Status.Conditions,
	} {
		for _, c := range conditions {
			into[owner+" "+c.Type] = fmt.Sprintf("%s %s", c.Status, c.Reason)
		}
	}
	for _, want := range []string{
		"cluster ManagedClusterJoined", "cluster ManagedClusterConditionAvailable",
		"cluster ClusterCertificateRotated", "add-on ClusterCertificateRotated", "add-on Available",
	} {
		if into[want] == "" {
			return fleet.NotYet("%s is not told", want)
		}
	}
	for _, good := range []string{
		"cluster ManagedClusterConditionAvailable", "cluster ClusterCertificateRotated", "add-on ClusterCertificateRotated",
	} {
		if into[good][:4] != "True" {
			return fleet.NotYet("%s is %s", good, into[good])
		}
	}
	return nil
}
