package placement

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/util/workqueue"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/internal/reconcile"
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

// TestLongPassesWaitForEachOther: a tenant with sixty Placements of many slices takes half of the workers only. A
// Placement that waits writes nothing, and is woken when its turn comes.
// Shows: hub/turns-of-tenants
func TestLongPassesWaitForEachOther(t *testing.T) {
	var r *Reconciler
	var second, short client.ObjectKey
	during, within := false, 0
	hub, r, first := hubOf(t, longPass, interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.CreateOption) error {
			if _, is := o.(*clusterv1beta1.PlacementDecision); is && !during {
				during = true
				assert.Zero(t, passOf(t, r, second), "a request comes when its turn does")
				assert.Zero(t, within)
				passOf(t, r, short)
				assert.Equal(t, 1, within, "one with few slices does not wait")
				within = 0
			} else if is {
				within++
			}
			return c.Create(ctx, o, options...)
		},
	})
	r.turns.Limit(1)
	r.queue = workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[ctrl.Request]())
	defer r.queue.ShutDown()
	for name, size := range map[string]int32{"second": 1, "short": 100} {
		p := placement()
		p.Name, p.UID = name, types.UID(name)
		p.Spec.DecisionStrategy.GroupStrategy.ClustersPerDecisionGroup = intstr.FromInt32(size)
		require.NoError(t, hub.Create(t.Context(), p))
	}
	second, short = client.ObjectKey{Namespace: first.Namespace, Name: "second"}, client.ObjectKey{Namespace: first.Namespace, Name: "short"}
	passOf(t, r, first)
	require.Equal(t, longPass-1, within, "the first of the slices aside")
	require.Equal(t, 1, r.queue.Len())
	next, _ := r.queue.Get()
	require.Equal(t, ctrl.Request{NamespacedName: second}, next)
	passOf(t, r, second)
	assert.Equal(t, 2*longPass-1, within)

	require.NoError(t, hub.Delete(t.Context(), &clusterv1beta1.Placement{ObjectMeta: metav1.ObjectMeta{Namespace: first.Namespace, Name: "second"}}))
	passOf(t, r, second)
	assert.True(t, r.turns.Enter(ctrl.Request{NamespacedName: first}, reconcile.Long), "no turn is taken any more")
}
