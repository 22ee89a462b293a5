package deploy

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/spokelet/spokelet/hub/addon"
	"github.com/spokelet/spokelet/internal/addonapi"
	"github.com/spokelet/spokelet/internal/reconcile"
)

// An author asks for a role on clusters with a label. The cache has the ManagedCluster as it was before it had that; the
// works are the same with and without the role.
//
// Shows: hub/removed-when-confirmed
func TestNoRoleIsTakenByAnEarlierCopyOfItsCluster(t *testing.T) {
	f := factsOf(configMap("always", 1))
	f.setup.Permissions = []addon.Permission{{Namespace: "c1", RoleRef: rbacv1.RoleRef{Kind: "ClusterRole", Name: "gpu"}}}
	f.cluster.Labels = map[string]string{"gpu": "yes"}
	f, _ = simulate(t, f)
	made := decide(f)
	for _, s := range made.bindings {
		require.Equal(t, reconcile.Create, s.Verb)
		s.After.UID = "b"
		f.bindings = append(f.bindings, s.After)
	}
	require.Len(t, f.bindings, 1)
	live := liveWith(t, f.addOn, f.cluster)

	cached := f
	cached.cluster = f.cluster.DeepCopy()
	cached.cluster.Labels, cached.setup.Permissions, cached.cluster.ResourceVersion = nil, nil, "earlier"
	p := decide(cached)
	require.Len(t, p.bindings, 1)
	require.Equal(t, reconcile.Delete, p.bindings[0].Verb)
	stale, err := isStale((&Reconciler{Live: live, AddOns: addonapi.Client{}}).stale(t.Context(), cached, p))
	require.NoError(t, err)
	assert.True(t, stale, "the agent loses role gpu by a copy of cluster c1 that the API server does not have any more")
}
