package placement

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/util/intstr"
	clocktesting "k8s.io/utils/clock/testing"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/spokelet/spokelet/hub/fleet"
	"github.com/spokelet/spokelet/internal/reconcile"
)

// resize edits how many clusters a group may have, and makes a pass.
func resize(t *testing.T, hub client.Client, r *Reconciler, key client.ObjectKey, size intstr.IntOrString) {
	t.Helper()
	var p clusterv1beta1.Placement
	require.NoError(t, hub.Get(t.Context(), key, &p))
	p.Generation++
	p.Spec.DecisionStrategy.GroupStrategy.ClustersPerDecisionGroup = size
	require.NoError(t, hub.Update(t.Context(), &p))
	passOf(t, r, key)
}

// TestAPlacementThatIsMisconfiguredHalfwaySaysSo: a person edits a Placement twice in a row: the second time, it is
// misconfigured. What is said of it is that.
func TestAPlacementThatIsMisconfiguredHalfwaySaysSo(t *testing.T) {
	for _, clusters := range []int{maxWrites, maxWrites + 10} {
		hub, r, key := hubOf(t, clusters, interceptor.Funcs{})
		passOf(t, r, key)
		resize(t, hub, r, key, intstr.FromString("none"))
		for range 5 {
			passOf(t, r, key)
		}
		var p clusterv1beta1.Placement
		var pages clusterv1beta1.PlacementDecisionList
		require.NoError(t, hub.Get(t.Context(), key, &p))
		require.NoError(t, hub.List(t.Context(), &pages))
		d := fleet.NewDecisions(fleet.Seen{Key: key, Placement: &p, Pages: reconcile.Pointers(pages.Items), Own: true}, noon())
		require.Error(t, d.Unfit)
		assert.ErrorContains(t, d.Unfit, "is misconfigured", "%d clusters", clusters)
	}
}

// As TestAPlacementThatIsMisconfiguredHalfwaySaysSo, of a Placement that decided before.
func TestAPlacementThatDecidedBeforeIsMisconfiguredHalfway(t *testing.T) {
	hub, r, key := hubOf(t, maxWrites+10, interceptor.Funcs{})
	for passOf(t, r, key).RequeueAfter > 0 {
	}
	require.Len(t, believed(t, hub, key), maxWrites+10)
	resize(t, hub, r, key, intstr.FromInt32(60)) // merges 60 groups: 59 pages go, 50 in a pass
	resize(t, hub, r, key, intstr.FromString("none"))
	passOf(t, r, key)
	var p clusterv1beta1.Placement
	var pages clusterv1beta1.PlacementDecisionList
	require.NoError(t, hub.Get(t.Context(), key, &p))
	require.NoError(t, hub.List(t.Context(), &pages))
	d := fleet.NewDecisions(fleet.Seen{Key: key, Placement: &p, Pages: reconcile.Pointers(pages.Items), Own: true}, noon())
	require.ErrorContains(t, d.Unfit, "is misconfigured")
}

// Nothing was ever decided, so nobody is told that no cluster is selected: who reads pages would uninstall what an
// earlier Placement of this name installed.
//
// Shows: hub/misconfigured-undecided
func TestANewPlacementThatIsMisconfiguredHasNoPage(t *testing.T) {
	p := placement()
	p.Spec.DecisionStrategy.GroupStrategy.ClustersPerDecisionGroup = intstr.FromString("none")
	set, binding := boundIn(p.Namespace, setGlobal)
	hub := hubWith(t, interceptor.Funcs{}, p, set, binding)
	key := client.ObjectKeyFromObject(p)
	r := &Reconciler{Client: hub, Live: hub, Clock: clocktesting.NewFakePassiveClock(noon())}
	pages := func() int {
		passOf(t, r, key)
		var all clusterv1beta1.PlacementDecisionList
		require.NoError(t, hub.List(t.Context(), &all))
		return len(all.Items)
	}
	assert.Zero(t, pages())
	var now clusterv1beta1.Placement
	require.NoError(t, hub.Get(t.Context(), key, &now))
	assert.True(t, meta.IsStatusConditionTrue(now.Status.Conditions, clusterv1beta1.PlacementConditionMisconfigured))

	resize(t, hub, r, key, intstr.FromInt32(1))
	assert.Equal(t, 1, pages(), "it is decided: no cluster is selected")
	resize(t, hub, r, key, intstr.FromString("none"))
	assert.Equal(t, 1, pages(), "what was decided stays")
}
