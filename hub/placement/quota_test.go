package placement

import (
	"context"
	"errors"
	"fmt"
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

// TestPagesThatCannotBeWrittenDoNotStarveTheOthers: a quota refuses 55 pages that are to be made, and one that is there
// gains a cluster.
func TestPagesThatCannotBeWrittenDoNotStarveTheOthers(t *testing.T) {
	full := false
	hub, r, key := hubOf(t, 3, interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.CreateOption) error {
			if _, is := o.(*clusterv1beta1.PlacementDecision); is && full {
				return apierrors.NewForbidden(schema.GroupResource{Resource: "placementdecisions"}, o.GetName(), errors.New("exceeded quota"))
			}
			return c.Create(ctx, o, options...)
		},
	})
	var p clusterv1beta1.Placement
	require.NoError(t, hub.Get(t.Context(), key, &p))
	strategy := &p.Spec.DecisionStrategy.GroupStrategy
	strategy.ClustersPerDecisionGroup = intstr.FromInt32(2)
	first := clusterv1beta1.DecisionGroup{GroupName: "first"}
	first.ClusterSelector.LabelSelector.MatchLabels = map[string]string{"group": "first"}
	strategy.DecisionGroups = []clusterv1beta1.DecisionGroup{first}
	p.Generation++
	require.NoError(t, hub.Update(t.Context(), &p))
	passOf(t, r, key) // c0000 and c0001 on a page, c0002 on another one, which has room

	full = true
	late := &clusterv1.ManagedCluster{}
	late.Name, late.Spec.HubAcceptsClient = "d", true
	require.NoError(t, hub.Create(t.Context(), late))
	for i := range 2 * (maxWrites + 5) {
		of := &clusterv1.ManagedCluster{}
		of.Name, of.Labels, of.Spec.HubAcceptsClient = fmt.Sprintf("f%04d", i), map[string]string{"group": "first"}, true
		require.NoError(t, hub.Create(t.Context(), of))
	}
	for range 10 {
		_, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: key})
		require.Error(t, err)
	}
	var pages clusterv1beta1.PlacementDecisionList
	require.NoError(t, hub.List(t.Context(), &pages))
	var selected []string
	for _, page := range pages.Items {
		for _, d := range page.Status.Decisions {
			selected = append(selected, d.ClusterName)
		}
	}
	assert.Contains(t, selected, "d")
}
