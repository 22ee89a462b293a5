package attacks_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	certificatesv1 "k8s.io/api/certificates/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/csr"
	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/internal/reconcile"
	"github.com/spokelet/spokelet/internal/token"
	"github.com/spokelet/spokelet/test/suite"
)

const (
	policyOwners    = "hub-manager-owners.spokelet.io"
	policyDeletions = "hub-manager-deletions.spokelet.io"
	policyAccounts  = "hub-manager-accounts.spokelet.io"
	policyLeases    = "hub-manager-leases.spokelet.io"
	// policyReferences guards what add-ons run with.
	policyReferences = "addon-config-references.spokelet.io"

	// orphaning is a patch that has the garbage collector delete an object.
	orphaning = `{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap","name":"gone","uid":"0"}]}}`
	// precious is a namespace of a user on the hub.
	precious = "precious"
)

// Shows: security/hub-manager-token-deletes
func TestTheTokenOfTheHubManagerDeletesNothingOfOthers(t *testing.T) {
	createPrecious(t)
	refuse(t, misusesByDeletion(), misusesByOwner())
}

// Shows: security/hub-manager-token-writes
func TestTheTokenOfTheHubManagerWritesOnlyItsOwnAccountsAndLeases(t *testing.T) {
	createPrecious(t)
	refuse(t, misusesOfAccounts(), misusesOfNamespacesAndLeases())
}

// Shows: security/agent-chooses-older-content
func TestAnAgentCannotChooseWhatAnAddOnRunsWith(t *testing.T) {
	const older = `{"status":{"configReferences":[{"group":"addon.open-cluster-management.io","resource":"addontemplates",` +
		`"name":"hello","lastObservedGeneration":1,"desiredConfig":{"name":"hello","specHash":"older"}}]}}`
	alpha, beta := &addonv1alpha1.ManagedClusterAddOn{ObjectMeta: in("cluster1", "hello")},
		&addonv1beta1.ManagedClusterAddOn{ObjectMeta: in("cluster1", "hello")}
	refuse(t, map[string]misuse{
		"the agent, in the stored version": {agent1, changeStatus(alpha, older), policyReferences},
		"the agent, in the other version":  {agent1, changeStatus(beta, older), policyReferences},
		"the agent, by removing it":        {agent1, changeStatus(alpha, `{"status":{"configReferences":null}}`), policyReferences},
	})
	agent := client.NewDryRunClient(shared.clients[agent1])
	suite.Eventually(t, func() error { // The hub manager may write in between.
		own := &addonv1alpha1.ManagedClusterAddOn{}
		if err := agent.Get(t.Context(), client.ObjectKeyFromObject(alpha), own); err != nil {
			return err
		}
		own.Status.Conditions = append(own.Status.Conditions, metav1.Condition{
			Type: "Heard", Status: metav1.ConditionTrue, Reason: "Heard", LastTransitionTime: metav1.Now(),
		})
		return agent.Status().Update(t.Context(), own)
	})
	require.NoError(t, changeStatus(alpha, older)(t.Context(), client.NewDryRunClient(shared.admin)))
}

// createPrecious creates what a user has on the hub: a namespace with accounts and roles, and a cluster-wide role. Some
// of it has a name or a label as objects of the hub manager have.
func createPrecious(t *testing.T) {
	t.Helper()
	ofCluster := map[string]string{names.LabelClusterName: "cluster1"}
	role := rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "view"}
	for _, o := range []client.Object{
		&corev1.Namespace{ObjectMeta: in("", precious)},
		&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "precious", Labels: ofCluster}},
		&rbacv1.ClusterRole{ObjectMeta: in("", names.RolePrefixCluster+"nobody")},
		&rbacv1.ClusterRoleBinding{ObjectMeta: in("", "precious"), RoleRef: role},
		&rbacv1.Role{ObjectMeta: in(precious, "precious")},
		&rbacv1.Role{ObjectMeta: in("cluster1", token.RoleName("precious"))},
		&rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "cluster1", Name: "precious", Labels: ofCluster}, RoleRef: role},
		&corev1.ServiceAccount{ObjectMeta: in("cluster1", token.ServiceAccountName("precious"))},
		&certificatesv1.CertificateSigningRequest{ObjectMeta: in("", "precious"), Spec: requestOfOthers(t)},
	} {
		require.NoError(t, client.IgnoreAlreadyExists(shared.admin.Create(t.Context(), o)))
	}
}

// requestOfOthers is a request that has nothing to do with clusters.
func requestOfOthers(t *testing.T) certificatesv1.CertificateSigningRequestSpec {
	t.Helper()
	key, err := csr.NewKey()
	require.NoError(t, err)
	request, err := csr.ForCluster("precious", agentName).Build(key)
	require.NoError(t, err)
	return request.Spec
}

func misusesByDeletion() map[string]misuse {
	all := map[string]misuse{
		"deletes a namespace": {theManager, remove(&corev1.Namespace{ObjectMeta: in("", precious)}), ""},
		"deletes a Lease":     {theManager, remove(&coordinationv1.Lease{ObjectMeta: in("kube-system", "kube-scheduler")}), ""},
		"deletes its own Lease": {
			theManager, remove(&coordinationv1.Lease{ObjectMeta: in(names.NamespaceHub, "spokelet-hub")}), "",
		},
		"deletes a ServiceAccount": {theManager, remove(&corev1.ServiceAccount{ObjectMeta: in("kube-system", "default")}), policyAccounts},
		"deletes a ServiceAccount with the name of one of an add-on": {
			theManager, remove(&corev1.ServiceAccount{ObjectMeta: in("cluster1", token.ServiceAccountName("precious"))}), policyAccounts,
		},
	}
	for sentence, o := range map[string]client.Object{
		"a ClusterRole of Kubernetes":                           &rbacv1.ClusterRole{ObjectMeta: in("", "system:basic-user")},
		"a ClusterRole with the label of a cluster":             &rbacv1.ClusterRole{ObjectMeta: in("", "precious")},
		"a ClusterRole with the name of one of a cluster":       &rbacv1.ClusterRole{ObjectMeta: in("", names.RolePrefixCluster+"nobody")},
		"a ClusterRoleBinding":                                  &rbacv1.ClusterRoleBinding{ObjectMeta: in("", "precious")},
		"its own ClusterRoleBinding":                            &rbacv1.ClusterRoleBinding{ObjectMeta: in("", "open-cluster-management:spokelet-hub")},
		"a Role":                                                &rbacv1.Role{ObjectMeta: in(precious, "precious")},
		"a Role with the name of one of an add-on":              &rbacv1.Role{ObjectMeta: in("cluster1", token.RoleName("precious"))},
		"a RoleBinding in the namespace of a cluster":           &rbacv1.RoleBinding{ObjectMeta: in("cluster1", "precious")},
		"a RoleBinding of Kubernetes":                           &rbacv1.RoleBinding{ObjectMeta: in("kube-system", "system:controller:bootstrap-signer")},
		"a certificate request that is not that of any cluster": &certificatesv1.CertificateSigningRequest{ObjectMeta: in("", "precious")},
	} {
		all["deletes "+sentence] = misuse{theManager, remove(o), policyDeletions}
	}
	return all
}

func misusesByOwner() map[string]misuse {
	all := map[string]misuse{
		"annotates a namespace": {
			theManager, change(&corev1.Namespace{ObjectMeta: in("", "cluster1")}, `{"metadata":{"annotations":{"a":"b"}}}`), policyNamespaces,
		},
		"has a Lease deleted": {
			theManager, change(&coordinationv1.Lease{ObjectMeta: in("kube-system", "kube-scheduler")}, orphaning), "",
		},
		"keeps a definition of an add-on from being deleted": {
			theManager, change(&addonv1alpha1.ClusterManagementAddOn{ObjectMeta: in("", "hello")}, `{"metadata":{"finalizers":["a.b/c"]}}`),
			policyOwners,
		},
		"keeps a cluster from being deleted": {
			theManager, change(newCluster("waiting"), `{"metadata":{"finalizers":["a.b/c"]}}`), policyOwners,
		},
		"has another template deployed": {
			theManager, change(&addonv1alpha1.ClusterManagementAddOn{ObjectMeta: in("", "hello")},
				`{"spec":{"installStrategy":{"type":"Placements","placements":[]}}}`), policyOwners,
		},
	}
	for sentence, o := range map[string]client.Object{
		"a namespace":                &corev1.Namespace{ObjectMeta: in("", precious)},
		"the namespace of a cluster": &corev1.Namespace{ObjectMeta: in("", "cluster1")},
		"a cluster":                  newCluster("waiting"),
		"a definition of an add-on":  &addonv1alpha1.ClusterManagementAddOn{ObjectMeta: in("", "hello")},
		"a ClusterRole of a cluster, with what others added": &rbacv1.ClusterRole{ObjectMeta: in("", names.RolePrefixCluster+"cluster1")},
	} {
		all["has "+sentence+" deleted"] = misuse{theManager, change(o, orphaning), policyOwners}
	}
	// Two policies refuse these.
	for _, o := range []client.Object{
		&corev1.ServiceAccount{ObjectMeta: in("kube-system", "default")},
		&rbacv1.Role{ObjectMeta: in(precious, "precious")},
		&rbacv1.RoleBinding{ObjectMeta: in("cluster1", "precious")},
	} {
		all["has "+reconcile.Describe(o)+" deleted"] = misuse{theManager, change(o, orphaning), "hub-manager-"}
	}
	return all
}

func misusesOfAccounts() map[string]misuse {
	own := func(namespace string) *corev1.ServiceAccount {
		return token.Render(namespace, "x").ServiceAccount
	}
	annotated, secretive := own("cluster1"), own("cluster1")
	annotated.Annotations = map[string]string{"cloud.example.com/role": "admin"}
	secretive.ImagePullSecrets = []corev1.LocalObjectReference{{Name: "x"}}
	unlabelled, other := own("cluster1"), own("cluster1")
	unlabelled.Labels, other.Name = nil, "default"
	all := map[string]misuse{}
	for sentence, try := range map[string]attempt{
		"annotates a ServiceAccount": change(&corev1.ServiceAccount{ObjectMeta: in("kube-system", "default")}, `{"metadata":{"annotations":{"cloud.example.com/role":"admin"}}}`),
		"makes a ServiceAccount that of an add-on": change(&corev1.ServiceAccount{ObjectMeta: in("cluster1", token.ServiceAccountName("precious"))},
			`{"metadata":{"labels":{"addon.open-cluster-management.io/name":"precious","addon.open-cluster-management.io/token-infrastructure":"true"}}}`),
		"creates a ServiceAccount elsewhere":            create(own(precious)),
		"creates a ServiceAccount in kube-system":       create(own("kube-system")),
		"creates a ServiceAccount beside its own":       create(own(names.NamespaceHub)),
		"creates a ServiceAccount without labels":       create(unlabelled),
		"creates a ServiceAccount of any name":          create(other),
		"creates a ServiceAccount of a cloud":           create(annotated),
		"creates a ServiceAccount with Secrets of pods": create(secretive),
	} {
		all[sentence] = misuse{theManager, try, policyAccounts}
	}
	infrastructure := token.Render("cluster1", "precious")
	all["makes a Role that of an add-on"] = misuse{theManager, change(&rbacv1.Role{ObjectMeta: in("cluster1", infrastructure.Role.Name)},
		`{"metadata":{"labels":{"addon.open-cluster-management.io/name":"precious","addon.open-cluster-management.io/token-infrastructure":"true"}},`+
			`"rules":[{"apiGroups":[""],"resources":["serviceaccounts/token"],"resourceNames":["precious-agent"],"verbs":["create"]}]}`), policyRoles}
	unmarked := token.Render("cluster1", "x").Role
	unmarked.Labels = nil
	all["lets an agent take tokens by a Role without labels"] = misuse{theManager, create(unmarked), policyRoles}
	all["lets an agent take tokens in another namespace"] = misuse{theManager, create(token.Render(precious, "x").Role), policyRoles}
	return all
}

func misusesOfNamespacesAndLeases() map[string]misuse {
	return map[string]misuse{
		"makes a namespace that of a cluster": {theManager,
			change(&corev1.Namespace{ObjectMeta: in("", precious)}, `{"metadata":{"labels":{"open-cluster-management.io/cluster-name":"precious"}}}`), policyNamespaces},
		"creates a namespace of any name": {theManager, create(&corev1.Namespace{ObjectMeta: in("", "mine")}), policyNamespaces},
		"creates a Lease of any name":     {theManager, create(&coordinationv1.Lease{ObjectMeta: in("cluster1", "mine")}), policyLeases},
		"creates a heartbeat elsewhere":   {theManager, create(&coordinationv1.Lease{ObjectMeta: in(precious, names.LeaseCluster)}), policyLeases},
		"creates the Lease of another leader": {
			theManager, create(&coordinationv1.Lease{ObjectMeta: in("kube-system", "spokelet-hub")}), policyLeases,
		},
		"takes the Lease of another leader": {
			theManager, change(&coordinationv1.Lease{ObjectMeta: in("kube-system", "kube-scheduler")}, `{"spec":{"holderIdentity":"me"}}`), "",
		},
		"takes its own Lease by a patch": {
			theManager, change(&coordinationv1.Lease{ObjectMeta: in(names.NamespaceHub, "spokelet-hub")}, `{"spec":{"holderIdentity":"me"}}`), "",
		},
	}
}
