package install

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
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
	"github.com/spokelet/spokelet/internal/addonapi"
	"github.com/spokelet/spokelet/internal/decode"
	"github.com/spokelet/spokelet/internal/names"
)

// between changes the clusters of a crowd from one to another.
func between(from, to int, change func(*candidate)) func(*fleetFacts) {
	return func(f *fleetFacts) {
		for i := from; i < to && i < len(f.candidates); i++ {
			change(&f.candidates[i])
		}
	}
}

func silentCluster(c *candidate) {
	name := c.managed.Name
	c.managed = clusterThat(metav1.ConditionUnknown, noon().Add(-time.Minute), clusterv1.ManagedClusterTaintUnreachable)
	c.managed.Name = name
	c.absence.away = true
}

func notAccepted(c *candidate) {
	c.managed = c.managed.DeepCopy()
	c.managed.Spec.HubAcceptsClient = false
}

// settles plays two passes of the fleet, a few seconds apart.
func (h *pagesHub) settles() {
	for range 2 {
		h.q.Add(ofFleet("hello"))
		h.passes(10 * time.Second)
	}
}

// withoutDecoding is a cache in which some clusters cannot be decoded.
func (h *pagesHub) withoutDecoding(bad func(cluster string) bool) client.Client {
	return interceptor.NewClient(h.WithWatch, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			err := c.Get(ctx, key, o, opts...)
			if _, is := o.(*clusterv1.ManagedCluster); is && err == nil && bad(key.Name) {
				decode.Mark(o, "a number is too large")
				return decode.Check("ManagedCluster", o)
			}
			return err
		},
	})
}

// Thirty of 100 clusters are held. The network fails, so that all of them are unreachable for a while. Then they come back
// ten by ten.
func TestWhatIsHeldStaysSoWhileItsClustersAreAway(t *testing.T) {
	for sentence, away := range map[string]func(*candidate){"unreachable": silentCluster, "not accepted": notAccepted} {
		t.Run(sentence, func(t *testing.T) {
			held := decideRemovals(crowd(30))
			require.Len(t, held.held, 30)
			gone := decideRemovals(crowd(30, between(0, 30, away), after(held)))
			require.Empty(t, gone.remove)
			assert.Equal(t, held.annotations[names.AnnotationRemovalHeld], gone.annotations[names.AnnotationRemovalHeld],
				"nobody confirmed it, nobody edited anything, and no cluster is selected again")
			back := decideRemovals(crowd(30, between(10, 30, away), after(gone)))
			assert.Empty(t, back.remove, "nobody confirmed anything")
		})
	}
}

// A user edits a Placement while thirty clusters are held that are away. No decision follows from that.
func TestAnEditAfterAnOutageReleasesNothing(t *testing.T) {
	held := decideRemovals(crowd(30))
	gone := decideRemovals(crowd(30, between(0, 30, silentCluster), after(held)))
	edited := func(f *fleetFacts) {
		f.state.Intents, f.intents = intents("before"), intended("now", noon().Add(-time.Minute))
	}
	back := decideRemovals(crowd(30, edited, after(gone)))
	assert.Empty(t, back.remove, "an edit without another decision releases nothing that is held")
}

// Nine are held (of more, which were selected again). They come back from an outage, and have a minute. In it, a
// cluster that leaves for good loses the add-on.
func TestAnotherRemovalForgetsNothingThatIsHeld(t *testing.T) {
	held := decideRemovals(crowd(9, annotated(names.AnnotationRemovalHeld, "before")))
	require.Len(t, held.held, 9)
	justBack := func(c *candidate) { c.absence.away, c.absence.back = true, noon().Add(-time.Second) }
	waitsAll := func(f *fleetFacts) {
		for i := range 9 {
			c := &f.candidates[i]
			name := c.managed.Name
			c.managed = clusterThat(metav1.ConditionTrue, noon().Add(-time.Second))
			c.managed.Name = name
			justBack(c)
		}
	}
	leaves := func(f *fleetFacts) { f.candidates[9].managed.DeletionTimestamp = new(metav1.NewTime(noon())) }
	r := decideRemovals(crowd(10, waitsAll, leaves, after(held)))
	require.Equal(t, []string{"c009"}, clustersOf(r.remove))
	assert.NotEmpty(t, r.annotations[names.AnnotationRemovalHeld])
	assert.Empty(t, decideRemovals(crowd(9, after(r))).remove, "nobody confirmed it")
}

// Thirty clusters are held. A restart of the hub manager (or any other decision) makes all of them wait three
// seconds. Then they cannot be judged. Then they can.
func TestWhatIsHeldIsKnownAfterAPassThatWaits(t *testing.T) {
	held := decideRemovals(crowd(30))
	require.Len(t, held.held, 30)
	quiet := func(f *fleetFacts) {
		f.placements[0] = decided("p", "x").but(func(s *scene) { s.since = noon() }).known()
	}
	started := decideRemovals(crowd(30, quiet, after(held)))
	require.Equal(t, held.annotations[names.AnnotationRemovalHeld], started.annotations[names.AnnotationRemovalHeld])
	assert.Len(t, digested(parseState(started.annotations[names.AnnotationRemovalState]).Held), 30, "they are still held")
	r := decideRemovals(crowd(30, unjudged(30), after(started)))
	assert.Equal(t, held.annotations[names.AnnotationRemovalHeld], r.annotations[names.AnnotationRemovalHeld],
		"what is held stays so, with the same clusters to confirm")
	edited := func(f *fleetFacts) {
		f.state.Intents, f.intents = intents("before"), intended("now", noon().Add(-time.Minute))
	}
	assert.Empty(t, decideRemovals(crowd(30, edited, after(r))).remove, "an edit without another decision confirms nothing")
}

// Thirty clusters are held, one of which cannot be judged by now. A user makes a typing error in the Placement. The text
// names that one cluster only, and a person confirms it. Then the error is mended.
func TestAConfirmationOfOneClusterIsNoneOfThirty(t *testing.T) {
	held := decideRemovals(crowd(30))
	require.Len(t, held.held, 30)
	wrong := func(f *fleetFacts) {
		f.intents = intended("wrong", noon().Add(-time.Hour))
		var left []string
		for name := range f.placements[0].Groups {
			left = append(left, name)
		}
		f.placements[0] = decided("p", left...).but(func(s *scene) {
			s.placement.Generation = 2
			s.placement.Status.Conditions = append(s.placement.Status.Conditions, metav1.Condition{
				Type: clusterv1beta1.PlacementConditionMisconfigured, Status: metav1.ConditionTrue, ObservedGeneration: 2, Message: "typo",
			})
		}).known()
	}
	r := decideRemovals(crowd(30, wrong, unjudged(1), after(held)))
	require.Empty(t, r.remove)
	assert.Equal(t, held.annotations[names.AnnotationRemovalHeld], r.annotations[names.AnnotationRemovalHeld],
		"what a person is asked to confirm is the same")
	// The person confirms what the annotation asks for.
	c := decideRemovals(crowd(30, wrong, unjudged(1), after(r), annotatedToo(names.AnnotationConfirmRemoval, nameOf("cma", []string{"c000"}))))
	mended := func(f *fleetFacts) { f.intents = intended("mended", noon().Add(-time.Minute)) }
	last := decideRemovals(crowd(30, mended, unjudged(1), after(c)))
	assert.Empty(t, last.remove, "nobody confirmed the removal from these 29")
}

// Thirty were held; 29 are selected again, and of one it is unknown, as its agent says much. Nothing else waits
// for it, neither a limit nor another removal.
func TestAClusterThatCannotBeJudgedHoldsUpNoOther(t *testing.T) {
	held := decideRemovals(crowd(30))
	r := decideRemovals(crowd(1, unjudged(1), after(held)))
	r = decideRemovals(crowd(1, unjudged(1), after(r)))
	next := decideRemovals(crowd(2, unjudged(1), after(r)))
	assert.Equal(t, []string{"c001"}, clustersOf(next.remove), "one of 100 clusters loses its label, days later")
	assert.Equal(t, []string{"c000"}, next.held, "that is still to be confirmed")
}

// The removal from both clusters is held. For a while neither can be decoded (what an agent wrote, or another version of
// the CRD), and then one of them can.
func TestWhatIsHeldStaysSoWhileItCannotBeDecoded(t *testing.T) {
	h := newPagesHub(t, true, 0, func(*clusterv1beta1.Placement) {})
	h.r.Limit = Limit{Percent: 25, Clusters: 1}
	h.settles()
	h.dropped("c1", "c2")
	h.settles()
	annotation := func() string {
		var cma addonv1alpha1.ClusterManagementAddOn
		require.NoError(t, h.Get(t.Context(), types.NamespacedName{Name: "hello"}, &cma))
		return cma.Annotations[names.AnnotationRemovalHeld]
	}
	require.NotEmpty(t, annotation())
	require.Empty(t, h.removed)
	bad := map[string]bool{"c1": true, "c2": true}
	h.r.Client = h.withoutDecoding(func(cluster string) bool { return bad[cluster] })
	before := annotation()
	h.settles()
	require.Empty(t, h.removed)
	assert.Equal(t, before, annotation(), "what a person is asked to confirm is the same")
	delete(bad, "c1")
	h.settles()
	assert.Empty(t, h.removed, "nobody confirmed anything")
}

// A person confirmed the removal from both clusters. That from c1 is not done yet, as its agent writes all the time. For a
// moment it writes what cannot be decoded.
func TestWhatIsConfirmedStaysSoWhileItCannotBeDecoded(t *testing.T) {
	h := newPagesHub(t, true, 0, func(*clusterv1beta1.Placement) {})
	h.r.Limit = Limit{Percent: 25}
	h.settles()
	h.dropped("c1", "c2")
	h.settles()
	require.Empty(t, h.removed)
	writes, bad := true, false
	h.r.Live = h.writing(func() bool { return writes })
	h.r.Client = h.withoutDecoding(func(cluster string) bool { return bad && cluster == "c1" })
	var cma addonv1alpha1.ClusterManagementAddOn
	require.NoError(t, h.Get(t.Context(), types.NamespacedName{Name: "hello"}, &cma))
	cma.Annotations[names.AnnotationConfirmRemoval] = nameOf("cma", []string{"c1", "c2"})
	require.NoError(t, h.Update(t.Context(), &cma))
	h.settles()
	require.Equal(t, []string{"c2"}, h.removed)
	bad = true
	h.settles()
	bad, writes = false, false
	h.settles()
	assert.Equal(t, []string{"c2", "c1"}, h.removed, "a person confirmed it")
}

// Of c1 it was unknown whether it is selected. A pass selects it, and has not written that yet.
func TestADoubtStaysUntilItIsWritten(t *testing.T) {
	h := newPagesHub(t, true, 0, func(*clusterv1beta1.Placement) {})
	passes, p := &fleet.Passes{}, types.NamespacedName{Namespace: "ns", Name: "p"}
	h.r.Placements.Passes = passes
	begun := passes.Begin(p, h.clock.Now())
	passes.Doubt(p, map[string]bool{"c1": true})
	h.dropped("c1")
	passes.End(p, begun)
	h.passes(2 * time.Minute)
	require.Empty(t, h.removed)
	// Another cluster changes, so that c1 can be judged, and is selected (decide_budget.go). The write of its page fails.
	passes.Ask(p, "c2", h.clock.Now())
	passes.Begin(p, h.clock.Now())
	passes.Doubt(p, nil)
	h.q.Add(ofFleet("hello"))
	h.passes(time.Second)
	assert.Empty(t, h.removed, "the pass selects it")
}

// The hub manager ends right after it removed 25 of 100 add-ons (or while it does so). Within the minute 18 more lose
// their label.
func TestWhatWasRemovedCountsAfterARestart(t *testing.T) {
	first := decideRemovals(crowd(25))
	require.Len(t, first.remove, 25)
	require.Len(t, first.counted, 25)
	written := parseState(first.annotations[names.AnnotationRemovalState]) // before the first deletion
	ofProcess := &memory{}
	ofProcess.begin("hello")
	ofProcess.recall("hello", written.Recent)
	next := crowd(18, after(first), func(f *fleetFacts) {
		f.size, f.recent = 75, ofProcess.recent("hello", noon().Add(-removalPeriod))
	})
	r := decideRemovals(next)
	assert.Empty(t, r.remove, "43 of 100 clusters within a minute")

	control := crowd(18, after(first), func(f *fleetFacts) { f.size, f.recent = 75, map[string]int{minuteOf(noon()): 25} })
	require.Len(t, decideRemovals(control).held, 18, "the process that removed them knows it")
}

// The hub manager starts with a ClusterManagementAddOn in its cache that is a minute old; all else is as the API server
// has it. In that minute the add-on was removed from five clusters, as the annotation of the API server says.
func TestADefinitionThatIsBehindWidensNoLimit(t *testing.T) {
	for sentence, behind := range map[string]bool{"control": false, "the definition is a minute old": true} {
		t.Run(sentence, func(t *testing.T) {
			h := newPagesHub(t, true, 0, func(*clusterv1beta1.Placement) {})
			h.r.Limit = Limit{Percent: 25, Clusters: 1}
			for range 2 {
				h.q.Add(ofFleet("hello"))
				h.passes(time.Minute)
			}
			var old, cma addonv1alpha1.ClusterManagementAddOn
			require.NoError(t, h.Get(t.Context(), types.NamespacedName{Name: "hello"}, &old))
			require.NotEmpty(t, parseState(old.Annotations[names.AnnotationRemovalState]).Intents)
			h.dropped("c1")
			old.DeepCopyInto(&cma)
			state := parseState(old.Annotations[names.AnnotationRemovalState])
			state.Recent = map[string]int{minuteOf(h.clock.Now()): 5}
			cma.Annotations[names.AnnotationRemovalState] = state.encode()
			require.NoError(t, h.Update(t.Context(), &cma))
			require.NoError(t, h.Get(t.Context(), types.NamespacedName{Name: "hello"}, &cma))
			cache := interceptor.NewClient(h.WithWatch, interceptor.Funcs{
				Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
					if into, is := o.(*addonv1alpha1.ClusterManagementAddOn); is && behind {
						old.DeepCopyInto(into)
						return nil
					}
					return c.Get(ctx, key, o, opts...)
				},
			})
			h.r = &Reconciler{
				Client: cache, Live: h, AddOns: addonapi.Client{Client: cache}, Clock: h.clock, Workers: 1, Limit: h.r.Limit,
				Placements: &fleet.Placements{Client: h, Clock: h.clock, Own: true},
			}
			h.q.Add(ofFleet("hello"))
			for range 20 {
				_, _ = h.r.Reconcile(t.Context(), ofFleet("hello"))
				h.clock.step(time.Second)
			}
			assert.NoError(t, h.Get(t.Context(), types.NamespacedName{Namespace: "c1", Name: "hello"}, &addonv1alpha1.ManagedClusterAddOn{}),
				"five and this one are more than the limit")
		})
	}
}

// The API server deletes the add-on of c1, and its answer is lost (a timeout of a busy hub). A moment later c2 loses its
// label.
func TestARemovalWhoseAnswerIsLostCounts(t *testing.T) {
	for sentence, lost := range map[string]bool{"control": false, "the answer is lost": true} {
		t.Run(sentence, func(t *testing.T) {
			h := newPagesHub(t, true, 0, func(*clusterv1beta1.Placement) {})
			h.r.Limit = Limit{Percent: 60, Clusters: 1}
			for range 2 {
				h.q.Add(ofFleet("hello"))
				h.passes(time.Minute)
			}
			h.r.AddOns = addonapi.Client{Client: interceptor.NewClient(h.WithWatch, interceptor.Funcs{
				Delete: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
					if err := c.Delete(ctx, o, opts...); err != nil || !lost {
						return err
					}
					return apierrors.NewTimeoutError("the answer is lost", 1)
				},
			})}
			h.dropped("c1")
			for range 10 {
				_, _ = h.r.Reconcile(t.Context(), ofFleet("hello"))
				h.clock.step(time.Second)
			}
			require.Equal(t, []string{"c1"}, h.removed)
			h.dropped("c1", "c2")
			for range 70 {
				_, _ = h.r.Reconcile(t.Context(), ofFleet("hello"))
				h.clock.step(time.Second)
			}
			assert.Equal(t, []string{"c1"}, h.removed, "two of two within two minutes")
		})
	}
}

// A hub manager starts with a cache that has not seen a binding of yesterday, which does not concern the Placement (it is
// for another set). Both clusters lost their label while it was away. Nobody edited anything.
func TestABindingThatTheCacheLacksIsNoEdit(t *testing.T) {
	for sentence, hidden := range map[string]bool{"control": false, "the cache lacks it": true} {
		t.Run(sentence, func(t *testing.T) {
			h := newPagesHub(t, true, 0, func(*clusterv1beta1.Placement) {})
			h.r.Limit = Limit{Percent: 25, Clusters: 1}
			require.NoError(t, h.Create(t.Context(), &clusterv1beta2.ManagedClusterSetBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "other"}}))
			for range 4 {
				h.q.Add(ofFleet("hello"))
				h.passes(20 * time.Minute)
			}
			cache := interceptor.NewClient(h.WithWatch, interceptor.Funcs{
				List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
					err := c.List(ctx, list, opts...)
					if bindings, is := list.(*clusterv1beta2.ManagedClusterSetBindingList); is && hidden {
						bindings.Items = slices.DeleteFunc(bindings.Items, func(b clusterv1beta2.ManagedClusterSetBinding) bool { return b.Name == "other" })
					}
					return err
				},
			})
			h.dropped("c1", "c2")
			passes, p := &fleet.Passes{}, types.NamespacedName{Namespace: "ns", Name: "p"}
			h.r = &Reconciler{
				Client: cache, Live: h, AddOns: h.r.AddOns, Clock: h.clock, Workers: 1, Limit: h.r.Limit,
				Placements: &fleet.Placements{Client: h, Clock: h.clock, Own: true, Passes: passes},
			}
			passes.End(p, passes.Begin(p, h.clock.Now())) // it drops nothing, so it asks nothing
			h.q.Add(ofFleet("hello"))
			h.passes(90 * time.Second)
			assert.Empty(t, h.removed, "two of two clusters, and the API server has all bindings")
		})
	}
}

// With all of the hub: both are held. Then both are silent for a while, and c1 comes back.
func TestAnOutageReleasesNothingThatIsHeld(t *testing.T) {
	h := newPagesHub(t, true, 0, func(*clusterv1beta1.Placement) {})
	h.r.Limit = Limit{Percent: 25, Clusters: 1}
	for range 2 {
		h.q.Add(ofFleet("hello"))
		h.passes(time.Minute)
	}
	h.dropped("c1", "c2")
	h.passes(5 * time.Minute)
	require.Empty(t, h.removed)
	health := func(name string, is *clusterv1.ManagedCluster) {
		var was clusterv1.ManagedCluster
		require.NoError(t, h.Get(t.Context(), types.NamespacedName{Name: name}, &was))
		now := was.DeepCopy()
		now.Spec, now.Status = is.Spec, is.Status
		require.NoError(t, h.Update(t.Context(), now))
		h.r.ofCluster().UpdateFunc(t.Context(), event.UpdateEvent{ObjectOld: &was, ObjectNew: now}, h.q)
	}
	for _, name := range []string{"c1", "c2"} {
		health(name, clusterThat(metav1.ConditionUnknown, h.clock.Now(), clusterv1.ManagedClusterTaintUnreachable))
	}
	h.passes(5 * time.Minute)
	var cma addonv1alpha1.ClusterManagementAddOn
	require.NoError(t, h.Get(t.Context(), types.NamespacedName{Name: "hello"}, &cma))
	assert.NotEmpty(t, cma.Annotations[names.AnnotationRemovalHeld])
	health("c1", clusterThat(metav1.ConditionTrue, h.clock.Now()))
	h.passes(5 * time.Minute)
	assert.Empty(t, h.removed, "nobody confirmed it")
}
