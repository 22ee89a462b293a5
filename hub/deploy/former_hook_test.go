package deploy

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/spokelet/spokelet/csr"
	"github.com/spokelet/spokelet/internal/reconcile"
)

// Shows: security/shared-roles
// The hub manager is upgraded while the add-on is being deleted on c2, where its pre-delete hook runs: the roles of such
// an agent stay, because the hook may need the hub (docs/security.md, "What a denial does").
func TestAnAgentWhoseHookRunsKeepsItsRolesWhenTheBindingOfAllClustersGoes(t *testing.T) {
	former := roleBinding("shared", "", "a")
	former.Subjects = []rbacv1.Subject{{
		APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: csr.AddonGroups("c1", "a")[1],
	}}
	leaving := addOnAt("c2")
	leaving.DeletionTimestamp = new(metav1.NewTime(metav1.Unix(900, 0).Time))
	leaving.Finalizers = []string{"example.com/hook"} // As that of a hook that runs: it stays.
	cluster := func(name string) *clusterv1.ManagedCluster {
		return &clusterv1.ManagedCluster{
			ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: clusterv1.ManagedClusterSpec{HubAcceptsClient: true},
		}
	}
	r := formerWorld(t, interceptor.Funcs{}, former, addOnAt("c1"), leaving, ownNamespace("c1"), ownNamespace("c2"),
		cluster("c1"), cluster("c2"))
	r.Agents = only{}
	for _, name := range []string{"c2", "c1", "c2"} {
		_, err := r.Reconcile(t.Context(), reconcile.Request(name, "a")[0])
		require.NoError(t, err)
	}
	var all rbacv1.RoleBindingList
	require.NoError(t, r.Client.List(t.Context(), &all))
	subjects := map[string]string{}
	for _, binding := range all.Items {
		subjects[binding.Name] = binding.Subjects[0].Name
	}
	assert.Equal(t, map[string]string{
		former.Name + ":cluster:c1": csr.AddonGroups("c1", "a")[0], former.Name + ":cluster:c2": csr.AddonGroups("c2", "a")[0],
	}, subjects, "each has its own, and nobody that of all clusters")
}
