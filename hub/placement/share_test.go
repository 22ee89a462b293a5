package placement

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/spokelet/spokelet/internal/names"
)

// TestAPlacementOfManySlicesLeavesItsWorkerToOthers: thirty Placements of a tenant with a decision group for each
// cluster held all workers until the last of their slices was written. What is half written is not believed.
func TestAPlacementOfManySlicesLeavesItsWorkerToOthers(t *testing.T) {
	const fleetSize = 2*maxWrites + 7
	hub, r, key := hubOf(t, fleetSize, interceptor.Funcs{})
	pass := func() (written, decided int, wake, mark bool) {
		result := passOf(t, r, key)
		var list clusterv1beta1.PlacementDecisionList
		require.NoError(t, hub.List(t.Context(), &list))
		for _, decision := range list.Items {
			decided += len(decision.Status.Decisions)
		}
		var now clusterv1beta1.Placement
		require.NoError(t, hub.Get(t.Context(), key, &now))
		mark = meta.FindStatusCondition(now.Status.Conditions, names.ConditionDecided) != nil
		return len(list.Items), decided, result.RequeueAfter > 0, mark
	}
	for i := range 2 {
		written, decided, wake, mark := pass()
		assert.Equal(t, []any{(i + 1) * maxWrites, (i + 1) * maxWrites, true, false}, []any{written, decided, wake, mark}, i)
	}
	written, decided, wake, mark := pass()
	assert.Equal(t, []any{fleetSize, fleetSize, false, true}, []any{written, decided, wake, mark})
}
