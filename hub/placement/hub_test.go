package placement

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	clocktesting "k8s.io/utils/clock/testing"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/spokelet/spokelet/hub/fleet"
	"github.com/spokelet/spokelet/internal/hubprocess"
	"github.com/spokelet/spokelet/internal/names"
)

// hubOf is a hub with a Placement that has a decision group for each cluster, and its reconciler.
func hubOf(t *testing.T, clusters int, funcs interceptor.Funcs) (client.WithWatch, *Reconciler, client.ObjectKey) {
	t.Helper()
	p := placement()
	p.Spec.DecisionStrategy.GroupStrategy.ClustersPerDecisionGroup = intstr.FromInt32(1)
	set, binding := boundIn(p.Namespace, setGlobal)
	objects := []client.Object{p, set, binding}
	for i := range clusters {
		cluster := &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("c%04d", i)}}
		cluster.Spec.HubAcceptsClient = true
		objects = append(objects, cluster)
	}
	hub := hubWith(t, funcs, objects...)
	r := &Reconciler{Client: hub, Live: hub, Clock: clocktesting.NewFakePassiveClock(noon())}
	return hub, r, client.ObjectKeyFromObject(p)
}

// passOf makes a pass.
func passOf(t *testing.T, r *Reconciler, key client.ObjectKey) ctrl.Result {
	t.Helper()
	result, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: key})
	require.NoError(t, err)
	return result
}

// TestPagesThatAFinalizerKeepsDoNotHoldUpTheOthers: deleting what is being deleted used up the writes of each pass.
func TestPagesThatAFinalizerKeepsDoNotHoldUpTheOthers(t *testing.T) {
	const all = maxWrites + 10
	deletions := 0
	hub, r, key := hubOf(t, all, interceptor.Funcs{
		Delete: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.DeleteOption) error {
			deletions++
			return c.Delete(ctx, o, options...)
		},
	})
	for passOf(t, r, key).RequeueAfter > 0 {
	}
	var pages clusterv1beta1.PlacementDecisionList
	require.NoError(t, hub.List(t.Context(), &pages))
	require.Len(t, pages.Items, all)
	for i := range pages.Items {
		pages.Items[i].Finalizers = []string{"example.com/backup"}
		require.NoError(t, hub.Update(t.Context(), &pages.Items[i]))
	}
	var p clusterv1beta1.Placement
	require.NoError(t, hub.Get(t.Context(), key, &p))
	p.Generation, p.Spec.NumberOfClusters = p.Generation+1, new(int32(1))
	require.NoError(t, hub.Update(t.Context(), &p))

	var last ctrl.Result
	const passes = 20
	for range passes {
		last = passOf(t, r, key)
	}
	require.NoError(t, hub.List(t.Context(), &pages))
	var left []string
	for _, page := range pages.Items {
		if page.DeletionTimestamp == nil {
			left = append(left, page.Name)
		}
	}
	assert.Len(t, left, 1, "what is not selected any more is deleted")
	assert.LessOrEqual(t, deletions, all, "each page is deleted once")
	assert.Zero(t, last.RequeueAfter, "nothing is left to write")
	require.NoError(t, hub.Get(t.Context(), key, &p))
	assert.Equal(t, int32(1), p.Status.NumberOfSelectedClusters)
	mark := meta.FindStatusCondition(p.Status.Conditions, names.ConditionDecided)
	require.NotNil(t, mark)
	assert.Equal(t, p.Generation, mark.ObservedGeneration, "the Placement has decided")
}

// TestPagesWhoseMetadataIsCutAreNotWrittenWithoutAnEnd: the cache leaves out what a tenant fills pages with, and never
// what this package wrote.
func TestPagesWhoseMetadataIsCutAreNotWrittenWithoutAnEnd(t *testing.T) {
	t.Run("annotations", func(t *testing.T) {
		fillPages(t, func(page *clusterv1beta1.PlacementDecision) {
			metav1.SetMetaDataAnnotation(&page.ObjectMeta, "a.open-cluster-management.io/x", strings.Repeat("y", 17<<10))
		})
	})
	t.Run("labels", func(t *testing.T) {
		fillPages(t, func(page *clusterv1beta1.PlacementDecision) {
			for i := range 100 {
				key := fmt.Sprintf("%sa.open-cluster-management.io/x%d", strings.Repeat("a.", 100), i)
				metav1.SetMetaDataLabel(&page.ObjectMeta, key, strings.Repeat("y", 60))
			}
		})
	})
}

// fillPages fills pages that the Placement wrote, and makes twenty passes.
func fillPages(t *testing.T, fill func(*clusterv1beta1.PlacementDecision)) {
	t.Helper()
	const all = maxWrites + 1
	patches := 0
	cuts := hubprocess.Annotated(fleet.TrimDecision)
	hub, r, key := hubOf(t, all, interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			err := c.List(ctx, list, options...)
			if pages, is := list.(*clusterv1beta1.PlacementDecisionList); is { // as the cache has them
				for i := range pages.Items {
					_, _ = cuts(&pages.Items[i])
				}
			}
			return err
		},
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, patch client.Patch, options ...client.PatchOption) error {
			if _, is := o.(*clusterv1beta1.PlacementDecision); is {
				patches++
			}
			return c.Patch(ctx, o, patch, options...)
		},
	})
	for passOf(t, r, key).RequeueAfter > 0 {
	}
	for i := range all {
		var page clusterv1beta1.PlacementDecision
		require.NoError(t, hub.Get(t.Context(), client.ObjectKey{Namespace: key.Namespace, Name: fmt.Sprint(key.Name, "-decision-", i+1)}, &page))
		fill(&page)
		require.NoError(t, hub.Update(t.Context(), &page))
	}
	patches = 0
	var last ctrl.Result
	for range 20 {
		last = passOf(t, r, key)
	}
	assert.LessOrEqual(t, patches, all, "a page that says what it should is not written")
	assert.Zero(t, last.RequeueAfter, "nothing is left to write")
}
