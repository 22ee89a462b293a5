package placement

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/spokelet/spokelet/hub/fleet"
	"github.com/spokelet/spokelet/internal/reconcile"
)

// TestAClusterIsNotSelectedOnAPageThatIsAboutToGo: it stayed on such a page when it was selected again, and nobody
// believed the decisions, because readers leave the page out.
func TestAClusterIsNotSelectedOnAPageThatIsAboutToGo(t *testing.T) {
	hub, r, key := hubOf(t, 2, interceptor.Funcs{})
	passOf(t, r, key)
	var pages clusterv1beta1.PlacementDecisionList
	require.NoError(t, hub.List(t.Context(), &pages))
	require.Len(t, pages.Items, 2)
	for i := range pages.Items {
		pages.Items[i].Finalizers = []string{"example.com/backup"}
		require.NoError(t, hub.Update(t.Context(), &pages.Items[i]))
	}
	var p clusterv1beta1.Placement
	for _, number := range []int32{1, 2} {
		require.NoError(t, hub.Get(t.Context(), key, &p))
		p.Generation, p.Spec.NumberOfClusters = p.Generation+1, new(number)
		require.NoError(t, hub.Update(t.Context(), &p))
		for range 3 {
			passOf(t, r, key)
		}
		require.NoError(t, hub.Get(t.Context(), key, &p))
		require.NoError(t, hub.List(t.Context(), &pages))
		d := fleet.NewDecisions(fleet.Seen{Key: key, Placement: &p, Pages: reconcile.Pointers(pages.Items), Own: true}, noon())
		require.NoError(t, d.Incomplete, "with %d clusters", number)
		assert.Len(t, d.Names, int(number))
	}
}
