package placement

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/event"
)

// A cluster loses its label and is dropped. The hub manager ends before the add-on goes, and the label is put back. The
// hub manager starts, hears of all clusters and pages, and its first pass over the Placement is refused a write, or waits
// for its turn. Nobody has decided since the start, so nothing may be removed, not after three seconds either.
//
// Shows: invariants/selected-stays
func TestNothingIsRemovedAfterAStartBeforeThePlacementWasDecidedOnce(t *testing.T) {
	b := newBoth(t, func(s *clusterv1beta1.PlacementSpec) {
		s.Predicates = []clusterv1beta1.ClusterPredicate{{}}
		s.Predicates[0].RequiredClusterSelector.LabelSelector.MatchLabels = wantedLabels()
	})
	labelled := func(labels map[string]string) {
		edit(t, b.live, client.ObjectKey{Name: "c0001"}, &clusterv1.ManagedCluster{},
			func(c *clusterv1.ManagedCluster) { c.Labels = labels })
	}
	labelled(nil)
	b.runs(time.Second)
	require.NotContains(t, b.selected(), "c0001")
	require.Equal(t, manyClusters, b.left(), "decisions must be still for three seconds")
	labelled(wantedLabels()) // while no hub manager runs

	refused := true
	b.cache = interceptor.NewClient(b.live, interceptor.Funcs{
		SubResourcePatch: func(
			ctx context.Context, c client.Client, sub string, o client.Object, patch client.Patch, options ...client.SubResourcePatchOption,
		) error {
			if _, is := o.(*clusterv1beta1.PlacementDecision); is && refused {
				return errors.New("the API server is overloaded")
			}
			return c.SubResource(sub).Patch(ctx, o, patch, options...)
		},
	})
	b.starts()
	q := delayed{add: func(time.Duration) {}}
	var clusters clusterv1.ManagedClusterList
	require.NoError(t, b.cache.List(t.Context(), &clusters))
	for i := range clusters.Items {
		b.scheduler.batched(b.scheduler.ofCluster).Create(t.Context(), event.CreateEvent{Object: &clusters.Items[i]}, q)
	}
	for _, page := range pagesOf(t, b.live) {
		b.scheduler.batched(ofDecision).Create(t.Context(), event.CreateEvent{Object: page}, q)
	}
	run := func(within time.Duration) {
		for range within / (250 * time.Millisecond) {
			_, _ = b.scheduler.Reconcile(t.Context(), ctrl.Request{NamespacedName: b.key})
			_, err := b.installer.Reconcile(t.Context(), ctrl.Request{NamespacedName: types.NamespacedName{Name: "hello"}})
			require.NoError(t, err)
			b.clock.SetTime(b.clock.Now().Add(250 * time.Millisecond))
		}
	}
	run(5 * time.Second)
	refused = false
	run(10 * time.Second)
	require.Contains(t, b.selected(), "c0001")
	assert.Equal(t, manyClusters, b.left(), "c0001 has had its label since before the start")
}
