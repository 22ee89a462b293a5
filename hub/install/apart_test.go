package install

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	clusterv1beta2 "open-cluster-management.io/api/cluster/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/spokelet/spokelet/hub/fleet"
	"github.com/spokelet/spokelet/internal/decode"
	"github.com/spokelet/spokelet/internal/names"
)

// changes writes a change of a cluster, of which the handler hears.
func (h *pagesHub) changes(name string, change func(*clusterv1.ManagedCluster)) {
	h.Helper()
	var c clusterv1.ManagedCluster
	require.NoError(h, h.Get(h.Context(), types.NamespacedName{Name: name}, &c))
	was := c.DeepCopy()
	change(&c)
	require.NoError(h, h.Update(h.Context(), &c))
	h.r.ofCluster().UpdateFunc(h.Context(), event.UpdateEvent{ObjectOld: was, ObjectNew: &c}, h.q)
}

func (h *pagesHub) silent(name string) {
	h.changes(name, func(c *clusterv1.ManagedCluster) {
		c.Status.Conditions[0].Status = metav1.ConditionUnknown
		c.Status.Conditions[0].LastTransitionTime = metav1.NewTime(h.clock.Now().Truncate(time.Second))
		c.Spec.Taints = []clusterv1.Taint{{
			Key: clusterv1.ManagedClusterTaintUnreachable, Effect: clusterv1.TaintEffectNoSelect,
			TimeAdded: metav1.NewTime(h.clock.Now().Truncate(time.Second)),
		}}
	})
}

// unbinds deletes the binding of namespace ns, and binds makes it again; the handlers hear of it.
func (h *pagesHub) unbinds() {
	h.Helper()
	require.NoError(h, h.Delete(h.Context(), bindingOf("global")))
	h.q.Add(ofFleet("hello"))
}

func (h *pagesHub) binds(set string) {
	h.Helper()
	require.NoError(h, h.Create(h.Context(), bindingOf(set)))
	h.q.Add(ofFleet("hello"))
}

// lists has the add-on list another Placement, which has decided for nobody, with a namespace to which a set is bound.
func (h *pagesHub) lists(key types.NamespacedName, change func(*clusterv1beta1.Placement)) {
	h.Helper()
	page := pageOf(key.Name, 1)
	page.Namespace, page.Labels = key.Namespace, map[string]string{names.LabelPlacement: key.Name}
	page.CreationTimestamp = metav1.NewTime(noon().Add(-time.Hour))
	other := &clusterv1beta1.Placement{ObjectMeta: metav1.ObjectMeta{
		Namespace: key.Namespace, Name: key.Name, UID: types.UID(key.Name), Generation: 1,
	}}
	other.Status.Conditions = []metav1.Condition{fleet.Mark(1, []*clusterv1beta1.PlacementDecision{page})}
	change(other)
	set := &clusterv1beta2.ManagedClusterSet{ObjectMeta: metav1.ObjectMeta{Name: "theirs"}}
	binding := bindingOf("theirs")
	binding.Namespace = key.Namespace
	for _, o := range []client.Object{other, page, set, binding} {
		require.NoError(h, h.Create(h.Context(), o))
	}
	var cma addonv1alpha1.ClusterManagementAddOn
	require.NoError(h, h.Get(h.Context(), types.NamespacedName{Name: "hello"}, &cma))
	cma.Spec.InstallStrategy.Placements = append(cma.Spec.InstallStrategy.Placements, addonv1alpha1.PlacementStrategy{
		PlacementRef: addonv1alpha1.PlacementRef{Namespace: key.Namespace, Name: key.Name},
	})
	require.NoError(h, h.Update(h.Context(), &cma))
	h.q.Add(ofFleet("hello"))
	h.passes(time.Hour)
	require.Empty(h, h.removed)
}

// Base rule: no add-on is removed from a cluster that is only unavailable. Clusters are silent for an hour, and keep
// their add-ons. For less than a second they are in no set that is bound: a tool replaces the binding (delete, create),
// or an administrator moves a label in two writes. Who takes that back has time (apartPeriod).
func TestASilentClusterThatIsInNoSetForAMomentKeepsItsAddOns(t *testing.T) {
	for sentence, moment := range map[string]func(*pagesHub){
		"a tool replaces the binding": func(h *pagesHub) {
			h.unbinds()
			h.passes(time.Second)
			h.binds("global")
		},
		"labels move in two writes": func(h *pagesHub) {
			h.changes("c1", func(c *clusterv1.ManagedCluster) { delete(c.Labels, clusterv1beta2.ClusterSetLabel) })
			h.passes(time.Second)
			h.changes("c1", func(c *clusterv1.ManagedCluster) {
				c.Labels = map[string]string{clusterv1beta2.ClusterSetLabel: "mine"}
			})
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			h := newPagesHub(t, true, 0, func(*clusterv1beta1.Placement) {})
			h.r.Limit = Limit{Percent: 25, Clusters: 1}
			if sentence == "labels move in two writes" {
				require.NoError(t, h.Create(t.Context(), &clusterv1beta2.ManagedClusterSet{ObjectMeta: metav1.ObjectMeta{Name: "mine"}}))
				for _, name := range []string{"c1", "c2"} {
					h.changes(name, func(c *clusterv1.ManagedCluster) {
						c.Labels = map[string]string{clusterv1beta2.ClusterSetLabel: "mine"}
					})
				}
				h.binds("mine")
				h.unbinds()
			}
			h.settles()
			h.passes(time.Hour)
			h.silent("c1")
			h.silent("c2")
			h.dropped("c1", "c2")
			h.passes(time.Hour)
			require.Empty(t, h.removed, "they are only unavailable")
			moment(h)
			h.passes(time.Minute)
			assert.Empty(t, h.removed, "they are only unavailable")
		})
	}
}

// A namespace is deleted and created again, as GitOps tools do. The Placement comes half a second before its binding.
// Whether it selects the clusters is unknown until it is decided: unknown never deletes anything.
func TestAPlacementThatIsCreatedAgainBeforeItsBindingLosesNoAddOn(t *testing.T) {
	h := newPagesHub(t, true, 0, func(*clusterv1beta1.Placement) {})
	h.r.Limit = Limit{Percent: 25, Clusters: 1}
	passes, key := &fleet.Passes{}, types.NamespacedName{Namespace: "ns", Name: "p"}
	h.r.Placements.Passes = passes
	passes.End(key, passes.Begin(key, h.clock.Now()))
	h.settles()
	var p clusterv1beta1.Placement
	require.NoError(t, h.Get(t.Context(), key, &p))
	require.NoError(t, h.Delete(t.Context(), &p))
	h.r.ofPlacement().DeleteFunc(t.Context(), event.DeleteEvent{Object: &p}, h.q)
	passes.Forget(key)
	h.passes(100 * time.Millisecond)
	h.gone("p-decision-1")
	h.gone("p-decision-2")
	h.passes(100 * time.Millisecond)
	h.unbinds()
	h.passes(30 * time.Second)
	require.Empty(t, h.removed, "a Placement that is gone counts with what was bound when it was there")

	again := &clusterv1beta1.Placement{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "p", UID: "p2", Generation: 1}}
	require.NoError(t, h.Create(t.Context(), again))
	passes.Begin(key, h.clock.Now()) // our placement decides
	h.r.ofPlacement().CreateFunc(t.Context(), event.CreateEvent{Object: again}, h.q)
	h.passes(500 * time.Millisecond)
	h.binds("global")
	h.passes(500 * time.Millisecond)
	assert.Empty(t, h.removed, "the Placement has not decided yet")
}

// Clusters stay selected without a binding, as an earlier version selected them without asking (ADR 0018). One is
// silent, so that it is dropped for its taint.
func TestAGrandfatheredClusterThatIsSilentKeepsItsAddOn(t *testing.T) {
	h := newPagesHub(t, true, 0, func(*clusterv1beta1.Placement) {})
	h.unbinds()
	h.passes(time.Hour)
	require.Empty(t, h.removed, "both are selected")
	h.silent("c1")
	h.dropped("c1")
	h.passes(time.Hour)
	assert.Empty(t, h.removed, "it is only unavailable")
}

// Promise 1: an edit explains removals from clusters that the edited Placement dropped. It drops two clusters, on two
// pages. The cache has both pages when a pass looks at all add-ons, and the handler was told of the first page only.
func TestAnEditExplainsWhatThePassSawBeforeTheHandler(t *testing.T) {
	for sentence, late := range map[string]bool{"control": false, "the handler hears of the second page later": true} {
		t.Run(sentence, func(t *testing.T) {
			h := newPagesHub(t, true, 0, func(*clusterv1beta1.Placement) {})
			h.lists(types.NamespacedName{Namespace: "other", Name: "q"}, func(*clusterv1beta1.Placement) {})
			for _, name := range []string{"c1", "c2"} { // they are in the sets of both namespaces
				h.changes(name, func(c *clusterv1.ManagedCluster) {
					c.Labels = map[string]string{clusterv1beta2.ClusterSetLabel: "theirs"}
				})
			}
			h.r.Limit = Limit{Percent: 25}
			h.settles()
			var p clusterv1beta1.Placement
			require.NoError(t, h.Get(t.Context(), types.NamespacedName{Namespace: "ns", Name: "p"}, &p))
			older := p.DeepCopy()
			p.Generation = 3 // a user edits it
			require.NoError(t, h.Update(t.Context(), &p))
			h.r.ofPlacement().UpdateFunc(t.Context(), event.UpdateEvent{ObjectOld: older, ObjectNew: &p}, h.q)
			h.passes(time.Second)
			var events []event.UpdateEvent
			var pages []*clusterv1beta1.PlacementDecision
			for _, name := range []string{"p-decision-1", "p-decision-2"} {
				was := h.page(name)
				is := was.DeepCopy()
				is.Status.Decisions = nil
				require.NoError(t, h.Update(t.Context(), is))
				events, pages = append(events, event.UpdateEvent{ObjectOld: was, ObjectNew: is}), append(pages, is)
			}
			h.r.ofDecision().UpdateFunc(t.Context(), events[0], h.q)
			if late {
				h.passes(10 * time.Millisecond)
			}
			h.r.ofDecision().UpdateFunc(t.Context(), events[1], h.q)
			older = p.DeepCopy()
			p.Status.NumberOfSelectedClusters = 0
			p.Status.Conditions = []metav1.Condition{fleet.Mark(3, pages)}
			require.NoError(t, h.Update(t.Context(), &p))
			h.r.ofPlacement().UpdateFunc(t.Context(), event.UpdateEvent{ObjectOld: older, ObjectNew: &p}, h.q)
			h.passes(10 * time.Minute)
			assert.ElementsMatch(t, []string{"c1", "c2"}, h.removed, "the edit of the Placement explains it")
		})
	}
}

// Promise 2: what is uncertain about a Placement holds up removals only from clusters that it may select. A user of
// another namespace writes a number that does not fit into the type of Go, which the API server takes.
func TestAPlacementOfAnotherUserThatCannotBeDecodedHoldsUpNothing(t *testing.T) {
	for sentence, bad := range map[string]bool{"control": false, "it cannot be decoded": true} {
		t.Run(sentence, func(t *testing.T) {
			h := newPagesHub(t, true, 0, func(*clusterv1beta1.Placement) {})
			h.lists(types.NamespacedName{Namespace: "other", Name: "q"}, func(*clusterv1beta1.Placement) {})
			cache := interceptor.NewClient(h.WithWatch, interceptor.Funcs{
				Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
					err := c.Get(ctx, key, o, opts...)
					if _, is := o.(*clusterv1beta1.Placement); is && bad && key.Name == "q" {
						decode.Mark(o, "a number is too large")
						return decode.Check("Placement", o)
					}
					return err
				},
			})
			h.r.Client, h.r.Placements.Client = cache, cache
			h.dropped("c1")
			for range 60 {
				_, _ = h.r.Reconcile(t.Context(), ofFleet("hello"))
				h.clock.step(time.Minute)
			}
			assert.Equal(t, []string{"c1"}, h.removed, "the other Placement cannot select it")
		})
	}
}

// Promise 2. A user of another namespace writes its Placement all the time (an annotation, or the status).
func TestAPlacementOfAnotherUserThatIsWrittenAllTheTimeHoldsUpNothing(t *testing.T) {
	h := newPagesHub(t, true, 0, func(*clusterv1beta1.Placement) {})
	h.lists(types.NamespacedName{Namespace: "other", Name: "q"}, func(*clusterv1beta1.Placement) {})
	writes := 0
	h.r.Live = interceptor.NewClient(h.WithWatch, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			if key.Name == "q" { // between the read of the cache and that of the API server
				var q clusterv1beta1.Placement
				require.NoError(t, c.Get(ctx, key, &q))
				writes++
				q.Labels = map[string]string{"n": time.Duration(writes).String()}
				require.NoError(t, c.Update(ctx, &q))
			}
			return c.Get(ctx, key, o, opts...)
		},
	})
	h.dropped("c1")
	for range 600 {
		_, _ = h.r.Reconcile(t.Context(), ofFleet("hello"))
		h.clock.step(time.Second)
	}
	assert.Equal(t, []string{"c1"}, h.removed, "the other Placement cannot select it")
}

// ADR 0019: just before each add-on is deleted, this process asks itself again. An administrator deleted the binding by
// mistake, and creates it again while add-ons are being removed. The watch has told our placement.
func TestARemovalEndsWhenTheBindingIsCreatedAgain(t *testing.T) {
	h := newPagesHub(t, true, 0, func(*clusterv1beta1.Placement) {})
	passes, p := &fleet.Passes{}, types.NamespacedName{Namespace: "ns", Name: "p"}
	h.r.Placements.Passes = passes
	begun := passes.Begin(p, h.clock.Now())
	h.unbinds()
	h.dropped("c1", "c2")
	passes.End(p, begun)
	h.afterFirstDelete(func() {
		h.binds("global")
		passes.Ask(p, fleet.EachCluster, h.clock.Now())
	})
	h.passes(4 * time.Second)
	assert.Equal(t, []string{"c1"}, h.removed, "what concerns all clusters changed, and no pass has looked at that")
}

// A Placement that another scheduler decides, which needs no bindings (decide_state.go), is away for six minutes, as its
// namespace is deleted and created again. Until the scheduler has decided it again, it is unknown what it selects.
func TestAPlacementOfAnotherSchedulerThatIsCreatedAgainHasItsFiveMinutes(t *testing.T) {
	for sentence, away := range map[string]time.Duration{"control: away for a minute": time.Minute, "away for six minutes": 6 * time.Minute} {
		t.Run(sentence, func(t *testing.T) {
			annotated := func(p *clusterv1beta1.Placement) {
				p.Annotations = map[string]string{clusterv1beta1.PlacementDisableAnnotation: "true"}
				p.Status = clusterv1beta1.PlacementStatus{}
			}
			h := newPagesHub(t, true, 0, annotated)
			h.r.Limit = Limit{Percent: 25, Clusters: 1}
			h.unbinds()
			h.settles()
			key := types.NamespacedName{Namespace: "ns", Name: "p"}
			var p clusterv1beta1.Placement
			require.NoError(t, h.Get(t.Context(), key, &p))
			require.NoError(t, h.Delete(t.Context(), &p))
			h.r.ofPlacement().DeleteFunc(t.Context(), event.DeleteEvent{Object: &p}, h.q)
			h.passes(100 * time.Millisecond)
			h.gone("p-decision-1")
			h.gone("p-decision-2")
			h.passes(away)
			require.Empty(t, h.removed)
			again := &clusterv1beta1.Placement{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "p", UID: "p2", Generation: 1}}
			annotated(again)
			require.NoError(t, h.Create(t.Context(), again))
			h.r.ofPlacement().CreateFunc(t.Context(), event.CreateEvent{Object: again}, h.q)
			h.passes(time.Second)
			assert.Empty(t, h.removed, "the other scheduler has had a second")
		})
	}
}

// Promise 1: "if others dropped them, too, only if those were edited as well". Both Placements select both clusters. The
// clusters lose the label of the first (a script, not an edit); half a minute later the user of the other one edits it.
func TestAnEditDoesNotExplainWhatAnotherPlacementDroppedAMomentBefore(t *testing.T) {
	for sentence, between := range map[string]time.Duration{"control: before any pass": 0, "half a minute": 30 * time.Second} {
		t.Run(sentence, func(t *testing.T) {
			h := newPagesHub(t, true, 0, func(*clusterv1beta1.Placement) {})
			key := types.NamespacedName{Namespace: "other", Name: "q"}
			h.lists(key, func(*clusterv1beta1.Placement) {})
			for _, name := range []string{"c1", "c2"} {
				h.changes(name, func(c *clusterv1.ManagedCluster) {
					c.Labels = map[string]string{clusterv1beta2.ClusterSetLabel: "theirs"}
				})
			}
			h.r.Limit = Limit{Percent: 25, Clusters: 1}
			theirs := func(generation int64, clusters ...string) {
				var page clusterv1beta1.PlacementDecision
				require.NoError(t, h.Get(t.Context(), types.NamespacedName{Namespace: "other", Name: "q-decision-1"}, &page))
				was := page.DeepCopy()
				page.Status.Decisions = nil
				for _, c := range clusters {
					page.Status.Decisions = append(page.Status.Decisions, clusterv1beta1.ClusterDecision{ClusterName: c})
				}
				require.NoError(t, h.Update(t.Context(), &page))
				var q clusterv1beta1.Placement
				require.NoError(t, h.Get(t.Context(), key, &q))
				older := q.DeepCopy()
				q.Generation, q.Status.NumberOfSelectedClusters = generation, int32(len(clusters))
				q.Status.Conditions = []metav1.Condition{fleet.Mark(generation, []*clusterv1beta1.PlacementDecision{&page})}
				require.NoError(t, h.Update(t.Context(), &q))
				h.r.ofDecision().UpdateFunc(t.Context(), event.UpdateEvent{ObjectOld: was, ObjectNew: &page}, h.q)
				h.r.ofPlacement().UpdateFunc(t.Context(), event.UpdateEvent{ObjectOld: older, ObjectNew: &q}, h.q)
			}
			theirs(1, "c1", "c2")
			h.settles()
			h.passes(time.Hour)
			h.dropped("c1", "c2")
			if between > 0 {
				h.passes(between)
			}
			require.Empty(t, h.removed, "the other one selects them")
			theirs(2)
			h.passes(10 * time.Minute)
			assert.Empty(t, h.removed, "the first one dropped them, too, and nobody edited it")
		})
	}
}

// The base rule: a removal from many clusters that no edit explains is held. While no hub manager runs, a script takes the
// clusters out of the set of the first user; nobody edits that Placement, its binding or set. The other user, who has all
// clusters bound and selects none of them, edits its Placement.
func TestAfterARestartAnEditOfAPlacementThatNeverSelectedTheClustersExplainsNothing(t *testing.T) {
	for sentence, edits := range map[string]bool{"control: nobody edits": false, "the other user edits its own": true} {
		t.Run(sentence, func(t *testing.T) {
			h := newPagesHub(t, true, 0, func(*clusterv1beta1.Placement) {})
			key := types.NamespacedName{Namespace: "other", Name: "q"}
			h.lists(key, func(*clusterv1beta1.Placement) {})
			all := bindingOf("global")
			all.Namespace = "other"
			require.NoError(t, h.Create(t.Context(), all))
			require.NoError(t, h.Create(t.Context(), &clusterv1beta2.ManagedClusterSet{ObjectMeta: metav1.ObjectMeta{Name: "mine"}}))
			for _, name := range []string{"c1", "c2"} {
				h.changes(name, func(c *clusterv1.ManagedCluster) {
					c.Labels = map[string]string{clusterv1beta2.ClusterSetLabel: "mine"}
				})
			}
			h.binds("mine")
			h.unbinds()
			h.r.Limit = Limit{Percent: 25, Clusters: 1}
			h.settles()
			h.passes(time.Hour)
			// The hub manager ends.
			for _, name := range []string{"c1", "c2"} {
				h.changes(name, func(c *clusterv1.ManagedCluster) { c.Labels = nil })
			}
			h.dropped("c1", "c2") // what our placement decides when it is there again
			if edits {
				var q clusterv1beta1.Placement
				require.NoError(t, h.Get(t.Context(), key, &q))
				var page clusterv1beta1.PlacementDecision
				require.NoError(t, h.Get(t.Context(), types.NamespacedName{Namespace: "other", Name: "q-decision-1"}, &page))
				q.Generation, q.Status.Conditions = 2, []metav1.Condition{fleet.Mark(2, []*clusterv1beta1.PlacementDecision{&page})}
				require.NoError(t, h.Update(t.Context(), &q))
			}
			h.r = &Reconciler{
				Client: h, Live: h, AddOns: h.r.AddOns, Clock: h.clock, Workers: 1, Limit: h.r.Limit,
				Placements: &fleet.Placements{Client: h, Clock: h.clock, Own: true},
			}
			h.q.Add(ofFleet("hello"))
			h.passes(10 * time.Minute)
			assert.Empty(t, h.removed, "nobody edited the Placement that selected them, its binding or its set")
		})
	}
}
