package hubcluster_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/csr"
	"github.com/spokelet/spokelet/csr/approve"
	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/test/suite"
)

// TestABootstrapCredentialOfOneClusterGetsNoOther tries both ways of binding one, as the documentation sets them up.
func TestABootstrapCredentialOfOneClusterGetsNoOther(t *testing.T) {
	t.Parallel()
	for cluster, bound := range map[string]client.Client{
		"bound-token":   userClient(t, "system:bootstrap:abcdef", bootstrapGroup, bootstrapGroup+":bound-token"),
		"bound-account": boundAccount(t, "bound-account"),
	} {
		t.Run(cluster, func(t *testing.T) {
			err := bound.Create(t.Context(), &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: cluster + "0"}})
			forbidden(t, err, "bound to ManagedCluster "+cluster+" and may create no other")
			for sentence, change := range map[string]func(*certificatesv1.CertificateSigningRequest){
				"another cluster":    func(r *certificatesv1.CertificateSigningRequest) { r.Labels[names.LabelClusterName] = cluster + "0" },
				"no cluster":         func(r *certificatesv1.CertificateSigningRequest) { r.Labels = nil },
				"the empty cluster":  func(r *certificatesv1.CertificateSigningRequest) { r.Labels[names.LabelClusterName] = "" },
				"a part of the name": func(r *certificatesv1.CertificateSigningRequest) { r.Labels[names.LabelClusterName] = "bound" },
			} {
				t.Run(sentence, func(t *testing.T) {
					err := bound.Create(t.Context(), newRequest(t, cluster, change))
					forbidden(t, err, "bound to cluster "+cluster+" and may ask for certificates of no other")
				})
			}
			err = bound.Create(t.Context(), newRequest(t, cluster, func(r *certificatesv1.CertificateSigningRequest) {
				r.Labels[names.LabelAddonName] = "hello"
			}))
			forbidden(t, err, "may not ask for certificates of add-ons")

			join(t, bound, cluster)
			expectIssued(t, request(t, bound, cluster, nil))
			expectCondition(t, cluster, clusterv1.ManagedClusterConditionHubAccepted, metav1.ConditionTrue,
				"HubClusterAdminAccepted")
		})
	}
}

// TestTheHubManagerBindsCredentialsToo takes the policy away: then the hub manager refuses.
func TestTheHubManagerBindsCredentialsToo(t *testing.T) {
	bound := userClient(t, trustedUser, bootstrapGroup, bootstrapGroup+":bound-one")
	policy := &admissionregistrationv1.ValidatingAdmissionPolicyBinding{}
	require.NoError(t, plane.Client.Get(t.Context(), client.ObjectKey{Name: "hub-bound-bootstrap-requests.spokelet.io"}, policy))
	require.NoError(t, plane.Client.Delete(t.Context(), policy))
	asked := newRequest(t, "bound-two", func(*certificatesv1.CertificateSigningRequest) {})
	suite.Eventually(t, func() error { return bound.Create(t.Context(), asked) })
	policy.ResourceVersion, policy.UID = "", ""
	require.NoError(t, plane.Client.Create(t.Context(), policy))
	event := expectEvent(t, asked, approve.ReasonBoundToOther)
	assert.Contains(t, event.Message, `is bound to cluster ["bound-one"] and asks for the credential of cluster "bound-two"`)
	expectOpen(t, asked)
	suite.Eventually(t, func() error {
		err := bound.Create(t.Context(), newRequest(t, "bound-two", func(*certificatesv1.CertificateSigningRequest) {}))
		return equal(true, err != nil)
	})
}

// TestAClusterThatHasJoinedGetsNoFirstCredentialByItself asks once more for a cluster whose agent has been there.
// Shows: registration/joined-cluster-needs-person
func TestAClusterThatHasJoinedGetsNoFirstCredentialByItself(t *testing.T) {
	t.Parallel()
	const name = "joined-before"
	bootstrap := userClient(t, trustedUser, bootstrapGroup)
	joinAndServe := func() {
		join(t, bootstrap, name)
		expectIssued(t, request(t, bootstrap, name, nil))
		expectCondition(t, name, clusterv1.ManagedClusterConditionHubAccepted, metav1.ConditionTrue,
			"HubClusterAdminAccepted")
		agent := userClient(t, csr.ClusterUser(name, "agent"), csr.ClusterGroup(name), csr.GroupManagedClusters)
		own := getCluster(t, name)
		before := own.DeepCopy()
		own.Status.Conditions = append(own.Status.Conditions, metav1.Condition{
			Type: clusterv1.ManagedClusterConditionJoined, Status: metav1.ConditionTrue, Reason: "ManagedClusterJoined",
			LastTransitionTime: metav1.Now(),
		})
		suite.Eventually(t, func() error { return agent.Status().Patch(t.Context(), own, client.MergeFrom(before)) })
	}
	joinAndServe()

	again := request(t, bootstrap, name, nil)
	event := expectEvent(t, again, approve.ReasonClusterJoined)
	assert.Equal(t, corev1.EventTypeWarning, event.Type)
	assert.Contains(t, event.Message, "run kubectl certificate approve on this request")
	expectOpen(t, again)

	t.Run("but with a person", func(t *testing.T) {
		approveByHand(t, again)
		expectIssued(t, again)
	})
	t.Run("but with a credential that is bound to it", func(t *testing.T) {
		expectIssued(t, request(t, userClient(t, "token", bootstrapGroup, bootstrapGroup+":"+name), name, nil))
	})
	t.Run("but when it was deleted and is created again", func(t *testing.T) {
		require.NoError(t, plane.Client.Delete(t.Context(), getCluster(t, name)))
		gone(t, &clusterv1.ManagedCluster{}, client.ObjectKey{Name: name})
		joinAndServe()
	})
}

// boundAccount is the ServiceAccount that is bound to a cluster, with the rights of the documentation.
func boundAccount(t *testing.T, cluster string) client.Client {
	t.Helper()
	name := "agent-registration-bootstrap." + cluster
	require.NoError(t, plane.Client.Create(t.Context(), &corev1.ServiceAccount{
		ObjectMeta: metav1.ObjectMeta{Namespace: names.NamespaceBootstrap, Name: name},
	}))
	require.NoError(t, plane.Client.Create(t.Context(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "open-cluster-management:bootstrap:" + cluster},
		RoleRef: rbacv1.RoleRef{
			APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "open-cluster-management:bootstrap",
		},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: names.NamespaceBootstrap, Name: name}},
	}))
	c := plane.Account(t, names.NamespaceBootstrap, name)
	suite.Eventually(t, func() error { // the API server hears of its role
		return c.Create(t.Context(), &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: cluster}}, client.DryRunAll)
	})
	return c
}
