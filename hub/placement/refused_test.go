package placement

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// TestPagesWhoseWriteIsRefusedDoNotStarveTheOthers: the API server refuses the writes of some pages that are there.
// The others gain their clusters.
func TestPagesWhoseWriteIsRefusedDoNotStarveTheOthers(t *testing.T) {
	for _, many := range []int{maxWrites, 2*maxWrites + 1, 3 * maxWrites} {
		t.Run(fmt.Sprint(many), func(t *testing.T) { testRefused(t, many) })
	}
}

func testRefused(t *testing.T, many int) {
	t.Helper()
	refuses := false
	refused := func(o client.Object) error {
		n, _ := strconv.Atoi(o.GetName()[strings.LastIndex(o.GetName(), "-")+1:])
		if _, is := o.(*clusterv1beta1.PlacementDecision); is && refuses && n <= many {
			return apierrors.NewForbidden(schema.GroupResource{Resource: "placementdecisions"}, o.GetName(), errors.New("a policy"))
		}
		return nil
	}
	hub, r, key := hubOf(t, many+10, interceptor.Funcs{
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, options ...client.PatchOption) error {
			if err := refused(o); err != nil {
				return err
			}
			return c.Patch(ctx, o, p, options...)
		},
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, o client.Object, p client.Patch, options ...client.SubResourcePatchOption) error {
			if err := refused(o); err != nil {
				return err
			}
			return c.SubResource(sub).Patch(ctx, o, p, options...)
		},
	})
	for passOf(t, r, key).RequeueAfter > 0 {
	}
	refuses = true
	var p clusterv1beta1.Placement
	require.NoError(t, hub.Get(t.Context(), key, &p))
	p.Generation++
	p.Spec.DecisionStrategy.GroupStrategy.ClustersPerDecisionGroup = intstr.FromInt32(2)
	require.NoError(t, hub.Update(t.Context(), &p))
	for i := range many + 10 {
		of := &clusterv1.ManagedCluster{}
		of.Name, of.Spec.HubAcceptsClient = fmt.Sprintf("d%04d", i), true
		require.NoError(t, hub.Create(t.Context(), of))
	}
	for range 10 {
		_, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: key})
		require.Error(t, err)
	}
	var pages clusterv1beta1.PlacementDecisionList
	require.NoError(t, hub.List(t.Context(), &pages))
	gained := 0
	for _, page := range pages.Items {
		for _, d := range page.Status.Decisions {
			if strings.HasPrefix(d.ClusterName, "d") {
				gained++
			}
		}
	}
	assert.Equal(t, 10, gained)
}
