package placement

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	clusterv1beta2 "open-cluster-management.io/api/cluster/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/spokelet/spokelet/hub/fleet"
	"github.com/spokelet/spokelet/hub/placement/layout"
	"github.com/spokelet/spokelet/internal/decode"
	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/internal/reconcile"
)

// believed returns the clusters that everybody believes the Placement to select.
func believed(t *testing.T, hub client.Client, key client.ObjectKey) []string {
	t.Helper()
	var p clusterv1beta1.Placement
	var pages clusterv1beta1.PlacementDecisionList
	require.NoError(t, hub.Get(t.Context(), key, &p))
	require.NoError(t, hub.List(t.Context(), &pages))
	d := fleet.NewDecisions(fleet.Seen{Key: key, Placement: &p, Pages: reconcile.Pointers(pages.Items), Own: true}, noon())
	require.NoError(t, d.Incomplete)
	return d.Names
}

// TestAClusterThatLeftIsNew: a cluster left, half an hour ago. Its page is still kept by a finalizer of another
// client. A taint NoSelectIfNew keeps it from coming back.
func TestAClusterThatLeftIsNew(t *testing.T) {
	for sentence, finalizers := range map[string][]string{
		"its page is gone (control)": nil, "a finalizer keeps its page": {"example.com/backup"},
	} {
		t.Run(sentence, func(t *testing.T) {
			hub, r, key := hubOf(t, 2, interceptor.Funcs{})
			passOf(t, r, key)
			var pages clusterv1beta1.PlacementDecisionList
			require.NoError(t, hub.List(t.Context(), &pages))
			for i := range pages.Items {
				pages.Items[i].Finalizers = finalizers
				require.NoError(t, hub.Update(t.Context(), &pages.Items[i]))
			}
			limit := func(n int32) {
				var p clusterv1beta1.Placement
				require.NoError(t, hub.Get(t.Context(), key, &p))
				p.Generation, p.Spec.NumberOfClusters = p.Generation+1, new(n)
				require.NoError(t, hub.Update(t.Context(), &p))
				for range 3 {
					passOf(t, r, key)
				}
			}
			limit(1)
			require.Equal(t, []string{"c0000"}, believed(t, hub, key))
			var c clusterv1.ManagedCluster
			require.NoError(t, hub.Get(t.Context(), client.ObjectKey{Name: "c0001"}, &c))
			c.Spec.Taints = []clusterv1.Taint{{Key: "x", Effect: clusterv1.TaintEffectNoSelectIfNew}}
			require.NoError(t, hub.Update(t.Context(), &c))
			limit(2)
			assert.Equal(t, []string{"c0000"}, believed(t, hub, key), "c0001 has not been selected for half an hour")
		})
	}
}

// TestAPageThatGoesDoesNotKeepWhatIsUnbound: an earlier version, which asked for no bindings, wrote a page that is
// being deleted since; a finalizer of another client keeps it. All pages that count were written since. The
// administrator unbinds the set.
func TestAPageThatGoesDoesNotKeepWhatIsUnbound(t *testing.T) {
	for sentence, kept := range map[string]bool{"no such page (control)": false, "such a page": true} {
		t.Run(sentence, func(t *testing.T) {
			hub, r, key := hubOf(t, 2, interceptor.Funcs{})
			passOf(t, r, key)
			if kept {
				old := &clusterv1beta1.PlacementDecision{ObjectMeta: metav1.ObjectMeta{
					Namespace: key.Namespace, Name: key.Name + "-decision-9", Finalizers: []string{"example.com/backup"},
					Labels:      map[string]string{names.LabelPlacement: key.Name},
					Annotations: map[string]string{names.AnnotationStickyPages: "true"},
				}}
				require.NoError(t, hub.Create(t.Context(), old))
				require.NoError(t, hub.Delete(t.Context(), old))
			}
			for range 3 {
				passOf(t, r, key)
			}
			require.Equal(t, []string{"c0000", "c0001"}, believed(t, hub, key))
			require.NoError(t, hub.Delete(t.Context(), &clusterv1beta2.ManagedClusterSetBinding{
				ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: setGlobal},
			}))
			for range 3 {
				passOf(t, r, key)
			}
			assert.Empty(t, believed(t, hub, key), "no set is bound any more")
		})
	}
}

// staysInTwoSteps deletes the pages of both clusters, which are selected before and after.
func staysInTwoSteps(t *testing.T, hub client.Client, r *Reconciler, key client.ObjectKey) {
	t.Helper()
	passOf(t, r, key)
	require.Equal(t, []string{"c0000", "c0001"}, believed(t, hub, key))
	begin(t, hub)
	for range 3 {
		passOf(t, r, key)
	}
	assert.Equal(t, []string{"c0000", "c0001"}, believed(t, hub, key))
}

// begin deletes all pages in the foreground, which takes two steps.
func begin(t *testing.T, hub client.Client) {
	t.Helper()
	var pages clusterv1beta1.PlacementDecisionList
	require.NoError(t, hub.List(t.Context(), &pages))
	for i := range pages.Items {
		pages.Items[i].Finalizers = []string{"foregroundDeletion"}
		require.NoError(t, hub.Update(t.Context(), &pages.Items[i]))
		require.NoError(t, hub.Delete(t.Context(), &pages.Items[i]))
	}
}

// TestAPageDeletedInTwoStepsKeepsItsClusters: a user deletes a page in the foreground (kubectl delete
// --cascade=foreground, Argo CD). The selection stays, also of a cluster that would not be selected for the first time.
func TestAPageDeletedInTwoStepsKeepsItsClusters(t *testing.T) {
	for sentence, change := range map[string]func(*clusterv1.ManagedCluster){
		"a taint keeps out what is new": func(c *clusterv1.ManagedCluster) {
			c.Spec.Taints = []clusterv1.Taint{{Key: "x", Effect: clusterv1.TaintEffectNoSelectIfNew}}
		},
		"it cannot be decoded": func(c *clusterv1.ManagedCluster) { decode.Mark(c, "a number is too large") },
	} {
		t.Run(sentence, func(t *testing.T) {
			hub, r, key := hubOf(t, 2, interceptor.Funcs{})
			passOf(t, r, key)
			var c clusterv1.ManagedCluster
			require.NoError(t, hub.Get(t.Context(), client.ObjectKey{Name: "c0001"}, &c))
			change(&c)
			require.NoError(t, hub.Update(t.Context(), &c))
			staysInTwoSteps(t, hub, r, key)
		})
	}
}

// The same with numberOfClusters: clusters that came later have names that come first.
func TestAPageDeletedInTwoStepsKeepsItsClustersOfANumber(t *testing.T) {
	hub, r, key := hubOf(t, 2, interceptor.Funcs{})
	var p clusterv1beta1.Placement
	require.NoError(t, hub.Get(t.Context(), key, &p))
	p.Generation, p.Spec.NumberOfClusters = p.Generation+1, new(int32(2))
	require.NoError(t, hub.Update(t.Context(), &p))
	passOf(t, r, key)
	for i := range 2 {
		of := &clusterv1.ManagedCluster{}
		of.Name, of.Spec.HubAcceptsClient = fmt.Sprintf("a%04d", i), true
		require.NoError(t, hub.Create(t.Context(), of))
	}
	staysInTwoSteps(t, hub, r, key)
}

// An earlier version selected clusters without a binding; a user deletes its page in the foreground.
func TestAPageOfAnEarlierVersionDeletedInTwoSteps(t *testing.T) {
	hub, r, key := hubOf(t, 2, interceptor.Funcs{})
	passOf(t, r, key)
	var pages clusterv1beta1.PlacementDecisionList
	require.NoError(t, hub.List(t.Context(), &pages))
	for i := range pages.Items {
		delete(pages.Items[i].Annotations, names.AnnotationSetBindings)
		require.NoError(t, hub.Update(t.Context(), &pages.Items[i]))
	}
	require.NoError(t, hub.Delete(t.Context(), &clusterv1beta2.ManagedClusterSetBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: setGlobal},
	}))
	staysInTwoSteps(t, hub, r, key)
}

// The finalizer goes between the list of the cache and the write.
func TestAPageThatIsGoneNeedsNoEmptying(t *testing.T) {
	hub, r, key := hubOf(t, 2, interceptor.Funcs{})
	passOf(t, r, key)
	var pages clusterv1beta1.PlacementDecisionList
	require.NoError(t, hub.List(t.Context(), &pages))
	begin(t, hub)
	require.NoError(t, hub.List(t.Context(), &pages))
	going := pages
	for i := range pages.Items {
		page := pages.Items[i].DeepCopy()
		page.Finalizers = nil
		require.NoError(t, hub.Update(t.Context(), page))
	}
	for i := range going.Items {
		require.NoError(t, r.write(t.Context(), layout.Slice{Have: &going.Items[i]}), "what is gone selects nothing")
	}
}

// As TestAClusterThatLeftIsNew; the hub manager stops right after the pass that deselected c0001 and said so in the
// status, for half an hour.
func TestAClusterThatLeftBeforeTheManagerStoppedIsNew(t *testing.T) {
	hub, r, key := hubOf(t, 2, interceptor.Funcs{})
	passOf(t, r, key)
	var pages clusterv1beta1.PlacementDecisionList
	require.NoError(t, hub.List(t.Context(), &pages))
	for i := range pages.Items {
		pages.Items[i].Finalizers = []string{"example.com/backup"}
		require.NoError(t, hub.Update(t.Context(), &pages.Items[i]))
	}
	limit := func(n int32) {
		var p clusterv1beta1.Placement
		require.NoError(t, hub.Get(t.Context(), key, &p))
		p.Generation, p.Spec.NumberOfClusters = p.Generation+1, new(n)
		require.NoError(t, hub.Update(t.Context(), &p))
	}
	limit(1)
	var p clusterv1beta1.Placement
	for p.Status.NumberOfSelectedClusters != 1 { // until it is decided, and published
		passOf(t, r, key)
		require.NoError(t, hub.Get(t.Context(), key, &p))
	}
	// Half an hour without a hub manager.
	var c clusterv1.ManagedCluster
	require.NoError(t, hub.Get(t.Context(), client.ObjectKey{Name: "c0001"}, &c))
	c.Spec.Taints = []clusterv1.Taint{{Key: "x", Effect: clusterv1.TaintEffectNoSelectIfNew}}
	require.NoError(t, hub.Update(t.Context(), &c))
	limit(2)
	for range 3 {
		passOf(t, r, key)
	}
	assert.Equal(t, []string{"c0000"}, believed(t, hub, key), "c0001 has not been selected for half an hour")
}

// TestACacheThatIsBehindCostsNoDeletions: pages with finalizers are deleted, and the watch shows it ten seconds later.
// The event of that wakes the Placement, and not the clock.
func TestACacheThatIsBehindCostsNoDeletions(t *testing.T) {
	const clusters = maxWrites
	deletions := 0
	var frozen *clusterv1beta1.PlacementDecisionList
	hub, r, key := hubOf(t, clusters, interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, l client.ObjectList, options ...client.ListOption) error {
			if pages, is := l.(*clusterv1beta1.PlacementDecisionList); is && frozen != nil {
				frozen.DeepCopyInto(pages)
				return nil
			}
			return c.List(ctx, l, options...)
		},
		Delete: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.DeleteOption) error {
			deletions++
			return c.Delete(ctx, o, options...)
		},
	})
	passOf(t, r, key)
	var pages clusterv1beta1.PlacementDecisionList
	require.NoError(t, hub.List(t.Context(), &pages))
	for i := range pages.Items {
		pages.Items[i].Finalizers = []string{"example.com/backup"}
		require.NoError(t, hub.Update(t.Context(), &pages.Items[i]))
	}
	passOf(t, r, key)
	var p clusterv1beta1.Placement
	require.NoError(t, hub.Get(t.Context(), key, &p))
	p.Generation, p.Spec.NumberOfClusters = p.Generation+1, new(int32(1))
	require.NoError(t, hub.Update(t.Context(), &p))
	require.NoError(t, hub.List(t.Context(), &pages))
	frozen = pages.DeepCopy()
	assert.Zero(t, passOf(t, r, key))
	assert.Equal(t, clusters-1, deletions)
	require.NoError(t, hub.Get(t.Context(), key, &p))
	decided := meta.FindStatusCondition(p.Status.Conditions, names.ConditionDecided)
	require.NotNil(t, decided)
	assert.Less(t, decided.ObservedGeneration, p.Generation, "the pages still have their clusters")

	frozen = nil
	require.NoError(t, hub.List(t.Context(), &pages))
	require.Equal(t, touched{key: fleet.NoCluster}, ofDecision(t.Context(), nil, &pages.Items[1]))
	pages.Items[1].Labels = nil
	require.Equal(t, touched{key: fleet.NoCluster}, ofDecision(t.Context(), nil, &pages.Items[1]), "it is woken by its owner")
	assert.Zero(t, passOf(t, r, key))
	assert.Equal(t, []string{"c0000"}, believed(t, hub, key))
}
