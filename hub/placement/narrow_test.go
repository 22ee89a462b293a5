package placement

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	clusterv1beta2 "open-cluster-management.io/api/cluster/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/spokelet/spokelet/hub/fleet"
)

// boundHub has clusters c1 to c3 in set mine, which is bound to the namespace of the Placement. It has decided.
func boundHub(t *testing.T, funcs interceptor.Funcs) (client.WithWatch, *Reconciler, client.ObjectKey) {
	t.Helper()
	p := placement()
	_, binding := boundIn(p.Namespace, "mine")
	set := &clusterv1beta2.ManagedClusterSet{ObjectMeta: metav1.ObjectMeta{Name: "mine"}}
	objects := []client.Object{p, set, binding}
	for _, name := range []string{"c1", "c2", "c3"} {
		c := &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: name}}
		c.Labels, c.Spec.HubAcceptsClient = map[string]string{clusterv1beta2.ClusterSetLabel: "mine"}, true
		objects = append(objects, c)
	}
	hub := hubWith(t, funcs, objects...)
	r := &Reconciler{
		Client: hub, Live: hub, Clock: clocktesting.NewFakePassiveClock(noon()), Passes: &fleet.Passes{},
	}
	key := client.ObjectKeyFromObject(p)
	passOf(t, r, key)
	passOf(t, r, key)
	require.Equal(t, []string{"c1", "c2", "c3"}, union(pagesOf(t, hub)))
	return hub, r, key
}

// frozen are the ways of a user who may write a Placement to keep its decisions.
func frozen() map[string]func(*testing.T, client.Client, client.ObjectKey) {
	return map[string]func(*testing.T, client.Client, client.ObjectKey){
		"it is misconfigured": func(t *testing.T, hub client.Client, key client.ObjectKey) {
			t.Helper()
			edit(t, hub, key, &clusterv1beta1.Placement{}, func(p *clusterv1beta1.Placement) {
				p.Generation++
				p.Spec.Predicates = []clusterv1beta1.ClusterPredicate{{}}
				p.Spec.Predicates[0].RequiredClusterSelector.CelSelector.CelExpressions = []string{"no such thing"}
			})
		},
		"it is left to another scheduler": func(t *testing.T, hub client.Client, key client.ObjectKey) {
			t.Helper()
			edit(t, hub, key, &clusterv1beta1.Placement{}, func(p *clusterv1beta1.Placement) {
				p.Annotations = map[string]string{clusterv1beta1.PlacementDisableAnnotation: "true"}
			})
		},
		"a finalizer keeps it": func(t *testing.T, hub client.Client, key client.ObjectKey) {
			t.Helper()
			edit(t, hub, key, &clusterv1beta1.Placement{}, func(p *clusterv1beta1.Placement) {
				p.Finalizers = []string{"example.com/mine"}
			})
			require.NoError(t, hub.Delete(t.Context(), &clusterv1beta1.Placement{
				ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name},
			}))
		},
	}
}

// moves puts cluster c2 into a set.
func moves(t *testing.T, hub client.Client, set string) {
	t.Helper()
	edit(t, hub, client.ObjectKey{Name: "c2"}, &clusterv1.ManagedCluster{}, func(c *clusterv1.ManagedCluster) {
		c.Labels = map[string]string{clusterv1beta2.ClusterSetLabel: set}
	})
}

// settles makes the passes of a minute.
func settles(t *testing.T, r *Reconciler, key client.ObjectKey) {
	t.Helper()
	for range 2 {
		passOf(t, r, key)
		later(t, r)
	}
	passOf(t, r, key)
}

// An administrator takes a cluster out of the set that is bound to a namespace. A user of that namespace, who may write
// the Placement, does not keep it.
//
// Shows: hub/narrowed
func TestAPlacementThatIsNotDecidedKeepsNoClusterThatLeavesItsSets(t *testing.T) {
	for sentence, freeze := range frozen() {
		t.Run(sentence, func(t *testing.T) {
			hub, r, key := boundHub(t, interceptor.Funcs{})
			freeze(t, hub, key)
			passOf(t, r, key)
			require.Equal(t, []string{"c1", "c2", "c3"}, union(pagesOf(t, hub)), "it keeps its decisions")
			was := &clusterv1.ManagedCluster{}
			require.NoError(t, hub.Get(t.Context(), client.ObjectKey{Name: "c2"}, was))
			moves(t, hub, "theirs")
			is := &clusterv1.ManagedCluster{}
			require.NoError(t, hub.Get(t.Context(), client.ObjectKey{Name: "c2"}, is))
			assert.Equal(t, touched{key: "c2"}, r.memory.concernedBy(was, is), "the change starts a pass")
			assert.Equal(t, outsidePeriod, passOf(t, r, key).RequeueAfter, "it may be on its way")
			require.Contains(t, union(pagesOf(t, hub)), "c2")
			settles(t, r, key)
			assert.Equal(t, []string{"c1", "c3"}, union(pagesOf(t, hub)))
			assert.Equal(t, []string{"c1", "c3"}, complete(t, hub, key), "its status says so")
			_, undecided := r.Passes.Undecided(key)
			assert.False(t, undecided)

			require.NoError(t, hub.DeleteAllOf(t.Context(), &clusterv1beta2.ManagedClusterSetBinding{}, client.InNamespace(key.Namespace)))
			settles(t, r, key)
			assert.Empty(t, union(pagesOf(t, hub)), "the binding is gone")
			assert.Empty(t, complete(t, hub, key))
			before := pagesOf(t, hub)
			passOf(t, r, key)
			assert.Equal(t, before, pagesOf(t, hub), "nothing is written again")
		})
	}
}

// complete returns the clusters that a Placement selects as others see it: its status agrees with its pages.
func complete(t *testing.T, hub client.Client, key client.ObjectKey) []string {
	t.Helper()
	var p clusterv1beta1.Placement
	require.NoError(t, hub.Get(t.Context(), key, &p))
	d := fleet.NewDecisions(fleet.Seen{Key: key, Placement: &p, Pages: pagesOf(t, hub), Own: true}, noon())
	require.NoError(t, d.Incomplete)
	assert.Len(t, d.Names, int(p.Status.NumberOfSelectedClusters))
	var count int32
	for _, group := range p.Status.DecisionGroups {
		count += group.ClustersCount
	}
	assert.Len(t, d.Names, int(count), "the groups have as many")
	return d.Names
}

func TestWhatIsNotDecidedStaysWhereItIsUncertain(t *testing.T) {
	others := func(t *testing.T, hub client.Client, _ client.ObjectKey) {
		t.Helper()
		page := pagesOf(t, hub)[0]
		page.Annotations = nil
		require.NoError(t, hub.Update(t.Context(), page))
	}
	for sentence, tc := range map[string]struct {
		freeze string
		change func(*testing.T, client.Client, client.ObjectKey)
		stays  bool
	}{
		"another scheduler has its own pages": {"it is left to another scheduler", others, true},
		"but not who else writes its pages":   {"it is misconfigured", others, false},
		"the binding is replaced, or the cluster comes back": {"it is misconfigured", func(t *testing.T, hub client.Client, _ client.ObjectKey) {
			t.Helper()
			moves(t, hub, "mine")
		}, true},
		"the selector of a set is wrong": {"it is misconfigured", func(t *testing.T, hub client.Client, _ client.ObjectKey) {
			t.Helper()
			edit(t, hub, client.ObjectKey{Name: "mine"}, &clusterv1beta2.ManagedClusterSet{}, func(s *clusterv1beta2.ManagedClusterSet) {
				s.Spec.ClusterSelector.SelectorType = "unknown"
			})
		}, true},
		"the cluster does not exist for a moment": {"it is misconfigured", func(t *testing.T, hub client.Client, _ client.ObjectKey) {
			t.Helper()
			require.NoError(t, hub.Delete(t.Context(), &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: "c2"}}))
		}, true},
	} {
		t.Run(sentence, func(t *testing.T) {
			hub, r, key := boundHub(t, interceptor.Funcs{})
			frozen()[tc.freeze](t, hub, key)
			moves(t, hub, "theirs")
			passOf(t, r, key)
			tc.change(t, hub, key)
			settles(t, r, key)
			assert.Equal(t, tc.stays, slices.Contains(union(pagesOf(t, hub)), "c2"))
		})
	}
}

// The cache shows that a cluster left, and the API server does not.
func TestWhatIsNotDecidedDropsNoClusterByWhatOnlyTheCacheSays(t *testing.T) {
	hub, r, key := boundHub(t, interceptor.Funcs{})
	frozen()["it is misconfigured"](t, hub, key)
	moves(t, hub, "theirs")
	r.Live = ahead{hub, func(_ *clusterv1beta1.Placement, c *clusterv1.ManagedCluster) {
		if c.Name == "c2" {
			c.Labels = map[string]string{clusterv1beta2.ClusterSetLabel: "mine"}
		}
	}}
	settles(t, r, key)
	assert.Contains(t, union(pagesOf(t, hub)), "c2")
}

// A user who may edit the Placement narrows what it asks for. No cluster left the sets of the namespace.
func TestWhatIsNotDecidedStaysWhateverItAsksFor(t *testing.T) {
	for sentence, freeze := range frozen() {
		t.Run(sentence, func(t *testing.T) {
			hub, r, key := boundHub(t, interceptor.Funcs{})
			freeze(t, hub, key)
			edit(t, hub, key, &clusterv1beta1.Placement{}, func(p *clusterv1beta1.Placement) {
				p.Generation, p.Spec.ClusterSets = p.Generation+1, []string{"another"}
			})
			settles(t, r, key)
			assert.Equal(t, []string{"c1", "c2", "c3"}, union(pagesOf(t, hub)))
		})
	}
}

// A user deletes the Placement, and has the garbage collector leave its decisions.
func TestDecisionsThatAreLeftByTheirPlacementKeepNoClusterThatLeaves(t *testing.T) {
	hub, r, key := boundHub(t, interceptor.Funcs{})
	require.NoError(t, hub.Delete(t.Context(), &clusterv1beta1.Placement{
		ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name},
	}))
	moves(t, hub, "theirs")
	settles(t, r, key)
	assert.Contains(t, union(pagesOf(t, hub)), "c2", "the garbage collector takes them")
	page := pagesOf(t, hub)[0]
	page.OwnerReferences = nil
	require.NoError(t, hub.Update(t.Context(), page))
	settles(t, r, key)
	assert.Equal(t, []string{"c1", "c3"}, union(pagesOf(t, hub)))
}

// The hub manager ends between its two writes, or the second is refused.
func TestANarrowedPlacementIsWrittenToItsEndAfterARestart(t *testing.T) {
	refuses := false
	hub, r, key := boundHub(t, interceptor.Funcs{
		SubResourcePatch: func(
			ctx context.Context, c client.Client, sub string, o client.Object, patch client.Patch, opts ...client.SubResourcePatchOption,
		) error {
			if _, is := o.(*clusterv1beta1.PlacementDecision); is && refuses {
				return errors.New("refused")
			}
			return c.SubResource(sub).Patch(ctx, o, patch, opts...)
		},
	})
	frozen()["it is left to another scheduler"](t, hub, key)
	moves(t, hub, "theirs")
	passOf(t, r, key)
	refuses = true
	later(t, r)
	_, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: key})
	require.Error(t, err)
	require.Contains(t, union(pagesOf(t, hub)), "c2")
	var p clusterv1beta1.Placement
	require.NoError(t, hub.Get(t.Context(), key, &p))
	require.False(t, fleet.IsDecided(&p, pagesOf(t, hub)), "nobody takes a part of it for all")
	refuses = false
	r = &Reconciler{Client: hub, Live: hub, Clock: r.Clock}
	settles(t, r, key)
	assert.Equal(t, []string{"c1", "c3"}, complete(t, hub, key))
}
