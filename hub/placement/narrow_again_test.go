package placement

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	clocktesting "k8s.io/utils/clock/testing"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	clusterv1beta2 "open-cluster-management.io/api/cluster/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/spokelet/spokelet/hub/fleet"
)

// refusing is a hub whose pages cannot be written while refuses is set.
func refusing(refuses *bool) interceptor.Funcs {
	return interceptor.Funcs{
		SubResourcePatch: func(
			ctx context.Context, c client.Client, sub string, o client.Object, patch client.Patch, opts ...client.SubResourcePatchOption,
		) error {
			if _, is := o.(*clusterv1beta1.PlacementDecision); is && *refuses {
				return errors.New("refused")
			}
			return c.SubResource(sub).Patch(ctx, o, patch, opts...)
		},
	}
}

// A Placement that is not decided loses clusters that leave the bound sets, and that survives restarts
// between the writes. c2 leaves; the status is written and the page is not (a conflict, a restart). Before the next
// pass, another cluster leaves as well, or c2 is put back.
func TestNarrowingGoesOnWhenMoreLeavesBetweenTheWrites(t *testing.T) {
	for sentence, freeze := range frozen() {
		t.Run(sentence, func(t *testing.T) {
			refuses := false
			hub, r, key := boundHub(t, refusing(&refuses))
			freeze(t, hub, key)
			leavesSet(t, hub, "c2")
			passOf(t, r, key)
			later(t, r)
			refuses = true
			_, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: key})
			require.Error(t, err)
			leavesSet(t, hub, "c3")
			refuses = false
			r = &Reconciler{Client: hub, Live: hub, Clock: r.Clock, Passes: &fleet.Passes{}}
			for range 3 {
				settles(t, r, key)
			}
			assert.Equal(t, []string{"c1"}, union(pagesOf(t, hub)), "c2 and c3 are in no set that is bound")
			var p clusterv1beta1.Placement
			require.NoError(t, hub.Get(t.Context(), key, &p))
			assert.True(t, fleet.IsDecided(&p, pagesOf(t, hub)), "the status agrees with the pages")
			assert.Equal(t, int32(1), p.Status.NumberOfSelectedClusters)
		})
	}
}

// The same, and the administrator takes back that c2 left.
func TestNarrowingThatIsTakenBackBetweenTheWritesLeavesNoDisagreement(t *testing.T) {
	for sentence, freeze := range frozen() {
		t.Run(sentence, func(t *testing.T) {
			refuses := false
			hub, r, key := boundHub(t, refusing(&refuses))
			freeze(t, hub, key)
			leavesSet(t, hub, "c2")
			passOf(t, r, key)
			later(t, r)
			refuses = true
			_, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: key})
			require.Error(t, err)
			edit(t, hub, client.ObjectKey{Name: "c2"}, &clusterv1.ManagedCluster{}, func(c *clusterv1.ManagedCluster) {
				c.Labels = map[string]string{clusterv1beta2.ClusterSetLabel: "mine"}
			})
			refuses = false
			for range 3 {
				settles(t, r, key)
			}
			require.Equal(t, []string{"c1", "c2", "c3"}, union(pagesOf(t, hub)))
			var p clusterv1beta1.Placement
			require.NoError(t, hub.Get(t.Context(), key, &p))
			assert.True(t, fleet.IsDecided(&p, pagesOf(t, hub)), "the status agrees with the pages")
			assert.Equal(t, int32(3), p.Status.NumberOfSelectedClusters)
			leavesSet(t, hub, "c3")
			for range 3 {
				settles(t, r, key)
			}
			assert.Equal(t, []string{"c1", "c2"}, union(pagesOf(t, hub)), "c3 is in no set that is bound")
		})
	}
}

// It keeps its decisions, but for clusters that leave the sets that are bound to its namespace. A user edits
// spec.clusterSets of a Placement that is not decided: no cluster left a set.
func TestAnEditOfClusterSetsOfAPlacementThatIsNotDecidedDropsNothing(t *testing.T) {
	for sentence, freeze := range frozen() {
		t.Run(sentence, func(t *testing.T) {
			hub, r, key := boundHub(t, interceptor.Funcs{})
			freeze(t, hub, key)
			passOf(t, r, key)
			edit(t, hub, key, &clusterv1beta1.Placement{}, func(p *clusterv1beta1.Placement) {
				p.Generation++
				p.Spec.ClusterSets = []string{"another"}
			})
			passOf(t, r, key)
			assert.Equal(t, []string{"c1", "c2", "c3"}, union(pagesOf(t, hub)), "all are in a set that is bound to the namespace")
		})
	}
}

// behindPlacements is a cache that has another version of the Placement.
func behindPlacements(hub client.WithWatch, old *clusterv1beta1.Placement) client.WithWatch {
	return interceptor.NewClient(hub, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			if into, is := o.(*clusterv1beta1.Placement); is {
				old.DeepCopyInto(into)
				return nil
			}
			return c.Get(ctx, key, o, opts...)
		},
	})
}

// With a cache of Placements that is behind: the user sets the annotation while a pass is between its pages
// and its status, so that the cache shows the annotation first, and the status a moment later.
func TestAStatusThatComesLateStartsAPassOfAPlacementWithTheAnnotation(t *testing.T) {
	hub, r, key := boundHub(t, interceptor.Funcs{})
	var was, is clusterv1beta1.Placement
	require.NoError(t, hub.Get(t.Context(), key, &was)) // with the mark for c1 to c3
	edit(t, hub, client.ObjectKey{Name: "c1"}, &clusterv1.ManagedCluster{}, func(c *clusterv1.ManagedCluster) {
		c.Spec.HubAcceptsClient = false
	})
	passOf(t, r, key) // drops c1: pages, then status
	require.Equal(t, []string{"c2", "c3"}, union(pagesOf(t, hub)))
	frozen()["it is left to another scheduler"](t, hub, key)
	require.NoError(t, hub.Get(t.Context(), key, &is))
	was.Annotations = is.Annotations
	r.Client = behindPlacements(hub, &was) // the annotation came before the status
	passOf(t, r, key)
	r.Client = hub
	// The event of the status: the same generation, the same annotations.
	woken := r.memory.altered(&is)
	if woken {
		passOf(t, r, key)
	}
	c2 := &clusterv1.ManagedCluster{}
	require.NoError(t, hub.Get(t.Context(), client.ObjectKey{Name: "c2"}, c2))
	leavesSet(t, hub, "c2")
	moved := &clusterv1.ManagedCluster{}
	require.NoError(t, hub.Get(t.Context(), client.ObjectKey{Name: "c2"}, moved))
	for one := range r.memory.concernedBy(c2, moved) {
		settles(t, r, one)
	}
	assert.True(t, woken, "the event of the status starts a pass")
	assert.Equal(t, []string{"c3"}, union(pagesOf(t, hub)), "c2 left the set, and the decisions are those of this controller")
}

// A user who may write Placements: it deletes its Placement and orphans what that owns (kubectl delete
// --cascade=orphan), and creates it again with the annotation. The decisions are still those of this controller.
func TestAPlacementThatIsCreatedAgainWithTheAnnotationKeepsNoClusterThatLeaves(t *testing.T) {
	hub, r, key := boundHub(t, interceptor.Funcs{})
	var p clusterv1beta1.Placement
	require.NoError(t, hub.Get(t.Context(), key, &p))
	require.NoError(t, hub.Delete(t.Context(), &p))
	for _, page := range pagesOf(t, hub) {
		page.OwnerReferences = nil
		require.NoError(t, hub.Update(t.Context(), page))
	}
	passOf(t, r, key)
	again := placement()
	again.UID, again.Generation = "again", 1
	again.Annotations = map[string]string{clusterv1beta1.PlacementDisableAnnotation: "true"}
	require.NoError(t, hub.Create(t.Context(), again))
	leavesSet(t, hub, "c2")
	settles(t, r, key)
	settles(t, r, key)
	d := fleet.NewDecisions(fleet.Seen{Key: key, Placement: again, Pages: pagesOf(t, hub), Own: true}, noon())
	require.NoError(t, d.Unfit, "what others see is complete")
	assert.NotContains(t, d.Names, "c2", "it left the set, and add-ons are installed there")
}

func leavesSet(t *testing.T, hub client.Client, cluster string) {
	t.Helper()
	edit(t, hub, client.ObjectKey{Name: cluster}, &clusterv1.ManagedCluster{}, func(c *clusterv1.ManagedCluster) {
		c.Labels = map[string]string{clusterv1beta2.ClusterSetLabel: "theirs"}
	})
}

// later lets the time pass in which a cluster may be on its way.
func later(t *testing.T, r *Reconciler) {
	t.Helper()
	clock, is := r.Clock.(*clocktesting.FakePassiveClock)
	require.True(t, is)
	clock.SetTime(clock.Now().Add(outsidePeriod))
}
