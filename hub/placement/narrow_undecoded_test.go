package placement

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/spokelet/spokelet/internal/decode"
)

// The fourth way to keep a cluster that an administrator moved to another user (ADR 0019 has three): a user writes
// numberOfClusters: 99999999999, which the API server takes and Go does not (test/integration/undecodable).
func TestAPlacementThatCannotBeDecodedKeepsNoClusterThatLeaves(t *testing.T) {
	hub, r, key := boundHub(t, interceptor.Funcs{})
	r.Client = interceptor.NewClient(hub, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			err := c.Get(ctx, key, o, opts...)
			if p, is := o.(*clusterv1beta1.Placement); is && err == nil { // as the cache has it (internal/decode)
				p.Spec, p.Status = clusterv1beta1.PlacementSpec{}, clusterv1beta1.PlacementStatus{}
				decode.Mark(o, "a number is too large")
				return decode.Check("Placement", o)
			}
			return err
		},
	})
	passOf(t, r, key)
	leavesSet(t, hub, "c2")
	for range 3 {
		passOf(t, r, key)
		later(t, r)
	}
	assert.NotContains(t, union(pagesOf(t, hub)), "c2", "it left the set, and add-ons are installed there")
}
