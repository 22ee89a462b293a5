package placement

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// After a restart, another client writes the status while the first pass is between its read and its note of what the
// status should be: the event says nothing yet, and the pass has nothing to write.
func TestAStatusThatIsChangedDuringTheFirstPassIsRepaired(t *testing.T) {
	hub, before, key := hubOf(t, 2, interceptor.Funcs{})
	for range 3 {
		passOf(t, before, key)
	}
	var was clusterv1beta1.Placement
	require.NoError(t, hub.Get(t.Context(), key, &was))
	require.Equal(t, int32(2), was.Status.NumberOfSelectedClusters)
	r := &Reconciler{Live: hub, Clock: before.Clock}
	woken, once := false, true
	r.Client = interceptor.NewClient(hub, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, k client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			err := c.Get(ctx, k, o, opts...)
			if _, is := o.(*clusterv1beta1.Placement); is && once {
				once = false
				var other clusterv1beta1.Placement
				require.NoError(t, hub.Get(ctx, key, &other))
				other.Status.NumberOfSelectedClusters = 7
				require.NoError(t, hub.Status().Update(ctx, &other))
				woken = r.memory.altered(&other) // the predicate of the event
			}
			return err
		},
	})
	passOf(t, r, key)
	if woken {
		passOf(t, r, key)
	}
	var is clusterv1beta1.Placement
	require.NoError(t, hub.Get(t.Context(), key, &is))
	assert.Equal(t, int32(2), is.Status.NumberOfSelectedClusters, "no event starts another pass")
}
