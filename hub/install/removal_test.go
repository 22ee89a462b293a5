package install

import (
	"fmt"
	"maps"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	clusterv1beta2 "open-cluster-management.io/api/cluster/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/hub/fleet"
	"github.com/spokelet/spokelet/internal/causes"
	"github.com/spokelet/spokelet/internal/names"
)

// removalOf are the facts about the removal of an add-on from its one cluster, without a limit.
func removalOf(f facts, placements ...*fleet.Decisions) fleetFacts {
	return fleetFacts{
		now: f.now, cma: f.cma, placements: placements,
		candidates: []candidate{{
			cluster: f.cluster, addon: f.addon, managed: f.managed, absence: absence{available: (&memory{}).availableSince(f.managed)},
		}},
	}
}

// keyOfOurs is the key of Placement p.
func keyOfOurs() types.NamespacedName {
	return types.NamespacedName{Namespace: "ns", Name: "p"}
}

// intents are those of an add-on that lists Placement p.
func intents(of string) map[string]string {
	return map[string]string{wholeList: intentFormat + "list", idOf(keyOfOurs()): intentFormat + of}
}

// intended are these, as they are known since an instant.
func intended(of string, since time.Time) map[string]intent {
	known := map[string]intent{}
	for key, is := range intents(of) {
		known[key] = intent{is, since}
	}
	return known
}

func TestFromWhereAnAddOnIsRemoved(t *testing.T) {
	out, in := decided("p", "x").known(), decided("q", "c1").known()
	tests := map[string]struct {
		f    fleetFacts
		want string
	}{
		"a cluster that leaves all placements":          {removalOf(with(ready(false), installed), out, decided("q").known()), "remove"},
		"not while another placement selects it":        {removalOf(with(ready(false), installed), out, in), "done"},
		"when no placement is listed any more":          {removalOf(with(ready(false), installed)), "remove"},
		"not when one placement is missing":             {removalOf(with(ready(false), installed), out, missing().known()), "kept"},
		"not when a person created it":                  {removalOf(with(ready(false), mine), out), "done"},
		"not when it is gone":                           {removalOf(ready(false), out), "done"},
		"not when it is going":                          {removalOf(with(ready(false), installed, addonGoes), out), "done"},
		"not while the decisions are just made":         {removalOf(with(ready(false), installed), decided("p").but(func(s *scene) { s.since = noon() }).known()), "waits"},
		"a cluster without a ManagedCluster":            {removalOf(with(ready(false), installed, func(f *facts) { f.managed = nil }), out), "remove"},
		"not while its cluster is not available":        {removalOf(with(ready(false), installed, unreachable), out), "kept"},
		"not while the hub does not accept its cluster": {removalOf(with(ready(false), installed, refused), out), "kept"},
		"a cluster that is not accepted and is deleted": {
			removalOf(with(ready(false), installed, refused, func(f *facts) { f.managed.DeletionTimestamp = new(metav1.NewTime(noon())) }), out), "remove",
		},
		"not just after its cluster was accepted again": {acceptedAgain(removalOf(with(ready(false), installed), out), 59*time.Second), "waits"},
		"a minute after that":                           {acceptedAgain(removalOf(with(ready(false), installed), out), time.Minute), "remove"},
		"a silent cluster when every placement does not mind": {
			removalOf(with(ready(false), installed, unreachable), decided("p").but(tolerant, edited, lately).known()), "remove",
		},
		"a silent cluster when another scheduler has not decided since it does not mind": {
			removalOf(with(ready(false), installed, unreachable), decided("p").but(tolerant, edited).known()), "kept",
		},
		"a silent cluster that was dropped when nobody minded already": {
			removalOf(with(ready(false), installed, unreachable), decided("p").but(tolerant).known()), "remove",
		},
	}
	for sentence, tc := range tests {
		t.Run(sentence, func(t *testing.T) {
			r := decideRemovals(tc.f)
			assert.Equal(t, tc.want == "remove", len(r.remove) == 1)
			assert.Equal(t, tc.want == "done", len(r.done) == 1)
			assert.Equal(t, tc.want == "kept", len(r.kept) == 1)
			assert.Equal(t, tc.want == "waits", !r.wake.IsZero())
			assert.Empty(t, r.held)
		})
	}
}

// unjudged makes the first clusters of a crowd ones that our placement cannot judge.
func unjudged(n int) func(*fleetFacts) {
	return func(f *fleetFacts) {
		set := map[string]bool{}
		for i := range n {
			set[fmt.Sprintf("c%03d", i)] = true
		}
		f.unjudged = map[types.NamespacedName]map[string]bool{{Namespace: "ns", Name: "p"}: set}
	}
}

// after takes over what an earlier decision wrote.
func after(r removals) func(*fleetFacts) {
	return func(f *fleetFacts) {
		if cma, is := f.cma.DeepCopyObject().(client.Object); is {
			cma.SetAnnotations(maps.Clone(r.annotations))
			f.cma = cma
		}
		edited := f.state.Intents
		if f.state = parseState(r.annotations[names.AnnotationRemovalState]); !maps.Equal(edited, intents("now")) {
			f.state.Intents = edited
		}
	}
}

// One cluster cannot be judged, for ever. It holds up neither what was held and is selected again, nor an edit that is
// done, nor the removal from others, and what was confirmed is done.
func TestAClusterThatCannotBeJudgedHoldsUpNothingElse(t *testing.T) {
	others := digest("cma", []string{"c015", "c016"})
	r := decideRemovals(crowd(1, unjudged(1), annotated(names.AnnotationRemovalHeld, "2 clusters"), func(f *fleetFacts) {
		f.state.Held = others
	}))
	assert.Empty(t, r.remove)
	assert.NotContains(t, r.annotations, names.AnnotationRemovalHeld)
	assert.Len(t, r.kept, 1)
	assert.Equal(t, noon().Add(time.Minute), r.wake, "no event need come when it can be judged")

	r = decideRemovals(crowd(1, unjudged(1), func(f *fleetFacts) { f.state.Intents = intents("before") }))
	assert.Equal(t, intents("now"), parseState(r.annotations[names.AnnotationRemovalState]).Intents, "the edit is done")

	r = decideRemovals(crowd(5, unjudged(1)))
	assert.Equal(t, []string{"c001", "c002", "c003", "c004"}, clustersOf(r.remove))
	assert.Len(t, r.kept, 1)

	r = decideRemovals(crowd(31, unjudged(1)))
	require.Len(t, r.held, 30)
	r = decideRemovals(crowd(31, unjudged(1), after(r), annotatedToo(names.AnnotationConfirmRemoval, nameOf("cma", r.held))))
	require.Len(t, r.remove, 30, "a person confirmed it")
	r = decideRemovals(crowd(1, unjudged(1), after(r)))
	assert.Len(t, decideRemovals(crowd(31, unjudged(1), after(r))).held, 30, "nobody confirmed what comes later")
}

// Thirty clusters are held. For a while they cannot be judged, or one of them, whose agent decides that.
func TestWhatIsHeldStaysSoWhileItCannotBeJudged(t *testing.T) {
	edited := func(f *fleetFacts) {
		f.state.Intents, f.intents = intents("before"), intended("now", noon().Add(-time.Minute))
	}
	held := decideRemovals(crowd(30, annotated(names.AnnotationRemovalHeld, "before")))
	require.Len(t, held.held, 30)
	for _, n := range []int{1, 30} {
		r := decideRemovals(crowd(30, unjudged(n), edited, after(held)))
		assert.Empty(t, r.remove)
		assert.Equal(t, held.annotations[names.AnnotationRemovalHeld], r.annotations[names.AnnotationRemovalHeld],
			"what a person is asked to confirm is the same")
		assert.Empty(t, decideRemovals(crowd(30, edited, after(r))).remove, "an edit without another decision confirms nothing")
	}
}

// refused makes the cluster one that the hub does not accept.
func refused(f *facts) { f.managed.Spec.HubAcceptsClient = false }

// acceptedAgain makes the cluster one that the hub accepted a while ago, after it had not.
func acceptedAgain(f fleetFacts, ago time.Duration) fleetFacts {
	denied := f.candidates[0].managed.DeepCopy()
	denied.Spec.HubAcceptsClient = false
	seen := absence{dropped: true}.update(denied, f.now.Add(-ago-time.Hour))
	f.candidates[0].absence = seen.update(f.candidates[0].managed, f.now.Add(-ago))
	return f
}

// crowd are the facts of an add-on on 100 clusters, of which the placement dropped n.
func crowd(n int, changes ...func(*fleetFacts)) fleetFacts {
	var left, gone []string
	for i := range 100 {
		if name := fmt.Sprintf("c%03d", i); i < n {
			gone = append(gone, name)
		} else {
			left = append(left, name)
		}
	}
	f := fleetFacts{
		now: noon(), cma: ready(false).cma, placements: []*fleet.Decisions{decided("p", left...).known()}, size: 100,
		intents: intended("now", noon().Add(-time.Hour)), state: removalState{Intents: intents("now")},
		limit: Limit{Percent: 25, Clusters: 10},
	}
	for _, cluster := range gone {
		f.candidates = append(f.candidates, candidate{
			cluster: cluster,
			addon: &addonv1beta1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{
				Namespace: cluster, Name: "hello", Labels: map[string]string{names.LabelInstalledBy: names.InstalledByPlacement},
			}},
			managed: &clusterv1.ManagedCluster{
				ObjectMeta: metav1.ObjectMeta{Name: cluster}, Spec: clusterv1.ManagedClusterSpec{HubAcceptsClient: true},
			},
		})
	}
	for _, change := range changes {
		change(&f)
	}
	return f
}

func annotated(key, value string) func(*fleetFacts) {
	return func(f *fleetFacts) {
		if cma, isBeta := f.cma.(*addonv1beta1.ClusterManagementAddOn); isBeta {
			cma = cma.DeepCopy()
			metav1.SetMetaDataAnnotation(&cma.ObjectMeta, key, value)
			f.cma = cma
		}
	}
}

// annotatedToo is annotated for a definition that has annotations, whose map is its own.
func annotatedToo(key, value string) func(*fleetFacts) {
	return func(f *fleetFacts) { f.cma.GetAnnotations()[key] = value }
}

func confirm(n int) func(*fleetFacts) {
	return annotated(names.AnnotationConfirmRemoval, nameOf("cma", clustersOf(crowd(n).candidates)))
}

// Shows: hub/removal-limit
func TestARemovalFromManyClustersAtOnceIsHeld(t *testing.T) {
	edited := func(f *fleetFacts) { f.state.Intents = intents("before") }
	lately := func(n int) func(*fleetFacts) {
		return func(f *fleetFacts) { f.recent = map[string]int{minuteOf(noon()): n} }
	}
	held := annotated(names.AnnotationRemovalHeld, "2:before")
	tests := map[string]struct {
		f             fleetFacts
		removed, held int
	}{
		"from a quarter it is not":                     {crowd(25), 25, 0},
		"from more it is":                              {crowd(26), 0, 26},
		"from ten clusters it never is":                {crowd(10, func(f *fleetFacts) { f.size = 10 }), 10, 0},
		"from eleven of eleven it is":                  {crowd(11, func(f *fleetFacts) { f.size = 11 }), 0, 11},
		"without a limit it never is":                  {crowd(100, func(f *fleetFacts) { f.limit.Percent = 0 }), 100, 0},
		"what was removed lately counts":               {crowd(20, lately(20)), 0, 20},
		"what was removed lately is part of the whole": {crowd(15, lately(10)), 15, 0},
		"after an edit it is not":                      {crowd(100, edited), 100, 0},
		"without a record nothing counts as an edit":   {crowd(26, func(f *fleetFacts) { f.state.Intents = nil }), 0, 26},
		"an edit does not release what is held":        {crowd(26, edited, held), 0, 26},
		"what is held stays so when it is few":         {crowd(3, held), 0, 3},
		"a confirmation removes it":                    {crowd(26, confirm(26), held), 26, 0},
		"a confirmation of others does not":            {crowd(26, confirm(27), held), 0, 26},
		"what was confirmed goes when it becomes less": {crowd(26, held, func(f *fleetFacts) { f.state.Confirmed = digest("cma", clustersOf(crowd(40).candidates)) }), 26, 0},
		"what joins what was confirmed is held":        {crowd(40, held, func(f *fleetFacts) { f.state.Confirmed = digest("cma", clustersOf(crowd(26).candidates)) }), 26, 14},
		"clusters that are being deleted do not count": {crowd(40, func(f *fleetFacts) {
			for i := range 20 {
				f.candidates[i].managed.DeletionTimestamp = new(metav1.NewTime(noon()))
			}
		}), 40, 0},
		"and go while others are held": {crowd(60, func(f *fleetFacts) {
			for i := range 20 {
				f.candidates[i].managed.DeletionTimestamp = new(metav1.NewTime(noon()))
			}
		}), 20, 40},
	}
	for sentence, tc := range tests {
		t.Run(sentence, func(t *testing.T) {
			r := decideRemovals(tc.f)
			assert.Len(t, r.remove, tc.removed)
			assert.Len(t, r.held, tc.held)
			text := r.annotations[names.AnnotationRemovalHeld]
			assert.Equal(t, tc.held > 0, text != "")
			assert.Equal(t, tc.held, causes.RemovalsHeld(r.annotations), "as the metric counts them")
			if tc.held > 0 {
				assert.Contains(t, text, names.AnnotationConfirmRemoval+"="+nameOf("cma", r.held))
			}
		})
	}
}

func TestWhatIsRecordedOnAClusterManagementAddOn(t *testing.T) {
	state := func(r removals) removalState { return parseState(r.annotations[names.AnnotationRemovalState]) }
	t.Run("what people decided, at first sight", func(t *testing.T) {
		assert.Equal(t, removalState{Intents: intents("now")}, state(decideRemovals(crowd(0, func(f *fleetFacts) { f.state.Intents = nil }))))
	})
	t.Run("an edit, when all that follows is done", func(t *testing.T) {
		f := crowd(0, func(f *fleetFacts) { f.state.Intents = intents("before") })
		assert.Equal(t, intents("now"), state(decideRemovals(f)).Intents)
		f.intents = intended("now", noon().Add(-time.Minute))
		r := decideRemovals(f)
		assert.Equal(t, intents("before"), state(r).Intents, "removals may still follow")
		assert.Equal(t, noon().Add(removalPeriod-time.Minute), r.wake)
		f = crowd(5, func(f *fleetFacts) { f.state.Intents = intents("before") })
		assert.Equal(t, intents("before"), state(decideRemovals(f)).Intents, "the removals are not done")
		f = crowd(0, func(f *fleetFacts) {
			f.state.Intents, f.placements = intents("before"), []*fleet.Decisions{missing().known()}
		})
		r = decideRemovals(f)
		assert.Equal(t, intents("before"), state(r).Intents, "nobody knows what follows")
		assert.Equal(t, f.now.Add(removalPeriod), r.wake, "it is looked at again, or an edit would always explain removals")
	})
	t.Run("what was removed lately, when it is much", func(t *testing.T) {
		f := crowd(0, func(f *fleetFacts) { f.recent = map[string]int{"m": 10} })
		assert.Empty(t, state(decideRemovals(f)).Recent)
		f.recent["n"] = 1
		assert.Equal(t, f.recent, state(decideRemovals(f)).Recent)
	})
	t.Run("what was confirmed, until it is done", func(t *testing.T) {
		held := annotated(names.AnnotationRemovalHeld, "2:before")
		r := decideRemovals(crowd(30, held, confirm(30)))
		assert.True(t, r.confirmed)
		assert.Empty(t, r.counted, "it does not count for the limit")
		assert.Len(t, digested(state(r).Confirmed), 30)
		assert.NotContains(t, r.annotations, names.AnnotationConfirmRemoval)
		assert.NotContains(t, r.annotations, names.AnnotationRemovalHeld)
		again := crowd(30, func(f *fleetFacts) { f.state = state(r) })
		assert.Len(t, decideRemovals(again).remove, 30, "after a restart, too")
		assert.Empty(t, state(decideRemovals(crowd(0, func(f *fleetFacts) { f.state = state(r) }))).Confirmed)
	})
	t.Run("that a removal is held, while that is uncertain", func(t *testing.T) {
		torn := func(f *fleetFacts) {
			f.placements = []*fleet.Decisions{decided("p", "x").but(func(s *scene) {
				s.placement.Status.NumberOfSelectedClusters = 7
			}).known()}
		}
		r := decideRemovals(crowd(30, torn, after(decideRemovals(crowd(30)))))
		assert.Contains(t, r.annotations[names.AnnotationRemovalHeld], "stopped selecting 30 clusters")
		r = decideRemovals(crowd(30, annotated(names.AnnotationRemovalHeld, "an earlier version did not note which"), torn))
		assert.Contains(t, r.annotations[names.AnnotationRemovalHeld], "stopped selecting 30 clusters")
		r = decideRemovals(crowd(0, annotated(names.AnnotationRemovalHeld, "2:before"), confirm(3)))
		assert.NotContains(t, r.annotations, names.AnnotationRemovalHeld, "nothing is held any more")
		assert.NotContains(t, r.annotations, names.AnnotationConfirmRemoval)
	})
	t.Run("nothing of ours without a limit, or without placements", func(t *testing.T) {
		f := crowd(0, annotated(names.AnnotationRemovalState, removalState{Intents: intents("now")}.encode()), annotated("theirs", "x"),
			func(f *fleetFacts) { f.limit.Percent = 0 })
		assert.Equal(t, map[string]string{"theirs": "x"}, decideRemovals(f).annotations)
		assert.Equal(t, map[string]string{"theirs": "x"}, abandon(f.cma.GetAnnotations()))
	})
	t.Run("in a form that can be read", func(t *testing.T) {
		r := decideRemovals(crowd(30, confirm(29)))
		assert.Equal(t, "placements stopped selecting 30 clusters, and no edit of a Placement, of the listed placements "+
			"or of a ManagedClusterSet explains it: c000, c001, c002, c003, c004, and 25 more. The add-on stays there. To remove it "+
			"from exactly these clusters, set annotation addon.spokelet.io/confirm-removal="+nameOf("cma", r.held)+
			" on this ClusterManagementAddOn; "+nameOf("cma", r.held[:29])+" was for other clusters",
			r.annotations[names.AnnotationRemovalHeld])
	})
}

func TestStateOfRemovalsSurvivesAndForeignValuesCountAsNone(t *testing.T) {
	s := removalState{Intents: intents("i"), Recent: map[string]int{"m": 3}, Confirmed: digest("u", []string{"a", "b"})}
	assert.Equal(t, s, parseState(s.encode()))
	assert.Empty(t, removalState{}.encode())
	assert.Equal(t, removalState{}, parseState("no JSON"))
	members := digested(s.Confirmed)
	assert.True(t, members.Has(digestOf("u", "a")))
	assert.False(t, members.Has(digestOf("u", "c")))
	assert.False(t, members.Has(digestOf("v", "a")))
	assert.Empty(t, digested("***"))
	assert.NotEqual(t, nameOf("u", []string{"a", "b"}), nameOf("u", []string{"a/b"})+"x")

	since := noon().Add(-removalPeriod)
	recent := recentOf(map[string]time.Time{"a": noon(), "b": noon()}, map[string]int{
		minuteOf(noon()): 3, minuteOf(since): 100, "no time": 100, minuteOf(since.Add(time.Minute)): 5,
	}, since)
	assert.Equal(t, map[string]int{minuteOf(noon()): 5, minuteOf(since.Add(time.Minute)): 5}, recent)
	assert.Equal(t, 10, sum(recent))
}

func TestWhatCountsAsAnEdit(t *testing.T) {
	type world struct {
		s        *scene
		listed   []types.NamespacedName
		bindings []*clusterv1beta2.ManagedClusterSetBinding
		sets     map[string]*clusterv1beta2.ManagedClusterSet
	}
	build := func() *world {
		w := &world{s: decided("p", "a"), listed: []types.NamespacedName{{Namespace: "ns", Name: "p"}}}
		binding := &clusterv1beta2.ManagedClusterSetBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "blue"}}
		binding.Spec.ClusterSet = "blue"
		w.bindings = []*clusterv1beta2.ManagedClusterSetBinding{binding}
		w.sets = map[string]*clusterv1beta2.ManagedClusterSet{
			"blue": {ObjectMeta: metav1.ObjectMeta{Name: "blue", Generation: 1}},
			"red":  {ObjectMeta: metav1.ObjectMeta{Name: "red", Generation: 1}},
		}
		return w
	}
	intent := func(w *world) map[string]string {
		placements := make([]*fleet.Decisions, len(w.listed))
		for i := range placements {
			placements[i] = w.s.known()
		}
		return intentsOf(placements, map[string][]*clusterv1beta2.ManagedClusterSetBinding{"ns": w.bindings}, w.sets)
	}
	tests := map[string]struct {
		change func(*world)
		want   bool
	}{
		"the spec of a Placement":          {func(w *world) { w.s.placement.Generation++ }, true},
		"another Placement of its name":    {func(w *world) { w.s.placement.UID = "new" }, true},
		"a Placement that is gone":         {func(w *world) { w.s.placement = nil }, true},
		"its leave for unbound clusters":   {func(w *world) { w.s.placement.Annotations = map[string]string{names.AnnotationSetBindings: "honoured"} }, true},
		"the listed placements":            {func(w *world) { w.listed = nil }, true},
		"a binding that is gone":           {func(w *world) { w.bindings = nil }, true},
		"a binding that changes":           {func(w *world) { w.bindings[0].Generation++ }, true},
		"a bound set":                      {func(w *world) { w.sets["blue"].Generation++ }, true},
		"a bound set that is gone":         {func(w *world) { delete(w.sets, "blue") }, true},
		"not another set":                  {func(w *world) { w.sets["red"].Generation++ }, false},
		"not the status of a Placement":    {func(w *world) { w.s.placement.Status.NumberOfSelectedClusters = 9 }, false},
		"not a label of a Placement":       {func(w *world) { w.s.placement.Labels = map[string]string{"a": "b"} }, false},
		"not what the decisions are about": {func(w *world) { w.s.pages = nil }, false},
	}
	for sentence, tc := range tests {
		t.Run(sentence, func(t *testing.T) {
			w := build()
			before := intent(w)
			tc.change(w)
			assert.Equal(t, tc.want, !maps.Equal(before, intent(w)))
		})
	}
}

// unreachable makes a cluster one whose agent is silent.
func unreachable(f *facts) {
	f.managed = clusterThat(metav1.ConditionUnknown, noon().Add(-time.Hour), clusterv1.ManagedClusterTaintUnreachable)
}

// edited has a Placement that people edited two minutes ago.
func edited(s *scene) {
	at := metav1.NewTime(noon().Add(-2 * time.Minute))
	s.placement.ManagedFields = []metav1.ManagedFieldsEntry{{Time: &at}}
}

// lately has a page written a moment ago.
func lately(s *scene) { s.pages[0].CreationTimestamp = metav1.NewTime(noon().Add(-time.Minute)) }

// tolerant lets a Placement select clusters whose agent is silent.
func tolerant(s *scene) {
	s.placement.Spec.Tolerations = []clusterv1beta1.Toleration{{
		Key: clusterv1.ManagedClusterTaintUnreachable, Operator: clusterv1beta1.TolerationOpExists,
	}}
}

// clusterThat is cluster c1 with a condition Available since an instant, and with taints.
func clusterThat(available metav1.ConditionStatus, since time.Time, taints ...string) *clusterv1.ManagedCluster {
	c := &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: "c1"}}
	c.Spec.HubAcceptsClient = true
	if available != "" {
		c.Status.Conditions = []metav1.Condition{{
			Type: clusterv1.ManagedClusterConditionAvailable, Status: available, LastTransitionTime: metav1.NewTime(since),
		}}
	}
	for _, key := range taints {
		c.Spec.Taints = append(c.Spec.Taints, clusterv1.Taint{
			Key: key, Effect: clusterv1.TaintEffectNoSelect, TimeAdded: metav1.NewTime(since),
		})
	}
	return c
}

// Shows: hub/unreachable-keeps
func TestAClusterThatIsOnlyUnreachableKeepsItsAddOns(t *testing.T) {
	const reach, broken = clusterv1.ManagedClusterTaintUnreachable, clusterv1.ManagedClusterTaintUnavailable
	yes, no, unknown := metav1.ConditionTrue, metav1.ConditionFalse, metav1.ConditionUnknown
	long, minute := noon().Add(-time.Hour), time.Minute
	written := func(at time.Time) func(*scene) {
		return func(s *scene) { s.pages[0].CreationTimestamp = metav1.NewTime(at) }
	}
	late, early := written(noon().Add(-minute)), written(long.Add(-minute))
	ours := func(s *scene) {
		s.own = true
		s.placement.Status.Conditions = append(s.placement.Status.Conditions, fleet.Mark(1, s.pages))
	}
	patient := func(seconds int64) func(*scene) {
		return func(s *scene) {
			tolerant(s)
			s.placement.Spec.Tolerations[0].TolerationSeconds = &seconds
		}
	}
	always := func(s *scene) {
		s.placement.Spec.Tolerations = []clusterv1beta1.Toleration{{Operator: clusterv1beta1.TolerationOpExists}}
	}
	going := clusterThat(unknown, long, reach)
	going.DeletionTimestamp = new(metav1.NewTime(noon()))
	justBack, dropped := clusterThat(yes, noon().Add(-20*time.Second)), absence{dropped: true}
	tests := map[string]struct {
		cluster *clusterv1.ManagedCluster
		absence absence
		edited  bool
		s       *scene
		want    string
		wake    time.Time
	}{
		"silent": {clusterThat(unknown, long, reach), absence{}, false, decided("p").but(late), "are not available", time.Time{}},
		"broken": {clusterThat(no, long, broken), absence{}, false, decided("p").but(late), "are not available", time.Time{}},
		"back, and the taint is there for a moment": {clusterThat(yes, long, reach), absence{}, false, decided("p").but(late), "are not available", time.Time{}},
		"never there":                                   {clusterThat("", long, reach), absence{}, false, decided("p").but(late), "are not available", time.Time{}},
		"silent even after an edit":                     {clusterThat(unknown, long, reach), absence{}, true, decided("p").but(late), "are not available", time.Time{}},
		"silent for longer than it is tolerated":        {clusterThat(unknown, long, reach), absence{}, false, decided("p").but(late, patient(60)), "are not available", time.Time{}},
		"not when the placement does not mind":          {clusterThat(unknown, long, reach), absence{}, false, decided("p").but(late, tolerant), "", time.Time{}},
		"not while the placement does not mind":         {clusterThat(unknown, long, reach), absence{}, false, decided("p").but(late, patient(7200)), "", time.Time{}},
		"not when the cluster goes":                     {going, absence{}, false, decided("p").but(late), "", time.Time{}},
		"not when there is no cluster":                  {nil, absence{}, false, decided("p").but(late), "", time.Time{}},
		"not without a taint, for which it was dropped": {clusterThat(unknown, long), absence{}, false, decided("p").but(late), "", time.Time{}},
		"not when it is well":                           {clusterThat(yes, long), absence{}, false, decided("p").but(late), "", time.Time{}},
		"a minute after it is back": {
			clusterThat(yes, noon().Add(-20*time.Second)), absence{away: true, back: noon().Add(-10 * time.Second)}, false,
			decided("p").but(written(noon().Add(-minute))), "a moment ago", noon().Add(50 * time.Second),
		},
		"ten minutes after it is back when another scheduler wrote a page at once": {
			justBack, absence{away: true, back: noon().Add(-10 * time.Second)}, false,
			decided("p").but(written(noon())), "a minute after that, or later", noon().Add(10*minute - 10*time.Second),
		},
		"ten minutes after it is back when such a page dropped it": {
			justBack, dropped, false, decided("p").but(written(noon())), "a minute after that, or later", noon().Add(10*minute - 20*time.Second),
		},
		"not when the page was written a minute after it came back": {
			clusterThat(yes, noon().Add(-2*minute)), dropped, false, decided("p").but(written(noon())), "", time.Time{},
		},
		"not longer than ten minutes": {
			clusterThat(yes, noon().Add(-11*minute)), absence{}, false, decided("p").but(written(noon().Add(-11 * minute))), "", time.Time{},
		},
		"not a minute after it is back and decided again": {
			clusterThat(yes, noon().Add(-2*minute)), absence{away: true, back: noon().Add(-minute)}, false,
			decided("p").but(written(noon())), "", time.Time{},
		},
		"back, and not decided again":                           {clusterThat(yes, long), absence{}, false, decided("p").but(early), "no placement was decided since", time.Time{}},
		"not when the placement never minds":                    {clusterThat(yes, long), absence{away: true, back: noon().Add(-time.Second)}, false, decided("p").but(early, always), "", time.Time{}},
		"back, and it minds after an hour":                      {clusterThat(yes, long), absence{}, false, decided("p").but(early, patient(3600)), "no placement was decided since", time.Time{}},
		"not back when an edit is a decision":                   {clusterThat(yes, long), absence{}, true, decided("p").but(early), "", time.Time{}},
		"not when it was dropped while well":                    {clusterThat(yes, long), absence{dropped: true}, false, decided("p").but(early), "", time.Time{}},
		"a minute when we decide ourselves":                     {clusterThat(yes, long), absence{noted: noon()}, false, decided("p").but(early, ours), "a moment ago", noon().Add(minute)},
		"a minute when we decide ourselves, after an edit, too": {clusterThat(yes, long), absence{noted: noon()}, true, decided("p").but(early, ours), "a moment ago", noon().Add(minute)},
		"not longer when we decide ourselves":                   {clusterThat(yes, long), absence{noted: noon().Add(-minute)}, false, decided("p").but(early, ours), "", time.Time{}},
	}
	for sentence, tc := range tests {
		t.Run(sentence, func(t *testing.T) {
			tc.absence.available = (&memory{}).availableSince(tc.cluster)
			c := unselected(tc.cluster, tc.absence, long, tc.s)
			wake, err := reachable(c, tc.edited, noon())
			assert.Equal(t, tc.wake, wake)
			if tc.want == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, tc.want)
		})
	}
	c := unselected(justBack, dropped, noon().Add(-minute), decided("p").but(written(noon())))
	wake, err := reachable(c, false, noon())
	require.NoError(t, err, "an add-on that was never there during an absence goes at once")
	assert.Zero(t, wake)
	wake, err = reachable(unselected(clusterThat(yes, long), absence{}, long), false, noon())
	require.NoError(t, err, "no placement is listed")
	assert.Zero(t, wake)
}

func TestWhatIsSeenOfAClusterThatIsUnselected(t *testing.T) {
	well, silent := clusterThat(metav1.ConditionTrue, noon()), clusterThat(metav1.ConditionUnknown, noon())
	a := absence{dropped: true}.update(well, noon())
	assert.Equal(t, absence{dropped: true}, a)
	a = a.update(silent, noon())
	assert.Equal(t, absence{away: true}, a)
	a = a.update(well, noon().Add(time.Second)).update(well, noon().Add(time.Minute))
	assert.Equal(t, absence{away: true, back: noon().Add(time.Second)}, a)
	assert.Equal(t, absence{away: true}, a.update(silent, noon()))
	assert.Equal(t, absence{}, absence{}.update(nil, noon()))

	assert.True(t, droppedWhileAvailable(well, noon(), noon()))
	assert.False(t, droppedWhileAvailable(well, noon(), noon().Add(-time.Second)), "the decision is older")
	assert.False(t, droppedWhileAvailable(silent, noon(), noon()))
	assert.False(t, droppedWhileAvailable(nil, noon(), noon()))
	tainted := clusterThat(metav1.ConditionTrue, noon(), clusterv1.ManagedClusterTaintUnavailable)
	assert.False(t, droppedWhileAvailable(tainted, noon(), noon()))
	tainted.Spec.Taints[0].Effect = clusterv1.TaintEffectPreferNoSelect
	assert.True(t, droppedWhileAvailable(tainted, noon(), noon()))
}

func TestTolerations(t *testing.T) {
	taint := clusterv1.Taint{
		Key: "k", Value: "v", Effect: clusterv1.TaintEffectNoSelect, TimeAdded: metav1.NewTime(noon().Add(-time.Minute)),
	}
	tests := map[string]struct {
		t    clusterv1beta1.Toleration
		want bool
	}{
		"all taints":            {clusterv1beta1.Toleration{Operator: clusterv1beta1.TolerationOpExists}, true},
		"the key":               {clusterv1beta1.Toleration{Key: "k", Operator: clusterv1beta1.TolerationOpExists}, true},
		"not another key":       {clusterv1beta1.Toleration{Key: "l", Operator: clusterv1beta1.TolerationOpExists}, false},
		"the value":             {clusterv1beta1.Toleration{Key: "k", Value: "v"}, true},
		"not another value":     {clusterv1beta1.Toleration{Key: "k", Operator: clusterv1beta1.TolerationOpEqual}, false},
		"the effect":            {clusterv1beta1.Toleration{Effect: clusterv1.TaintEffectNoSelect, Operator: clusterv1beta1.TolerationOpExists}, true},
		"not another effect":    {clusterv1beta1.Toleration{Effect: clusterv1.TaintEffectPreferNoSelect, Operator: clusterv1beta1.TolerationOpExists}, false},
		"for a while":           {clusterv1beta1.Toleration{Operator: clusterv1beta1.TolerationOpExists, TolerationSeconds: new(int64(61))}, true},
		"for the longest while": {clusterv1beta1.Toleration{Operator: clusterv1beta1.TolerationOpExists, TolerationSeconds: new(int64(math.MaxInt64))}, true},
		"not after that while":  {clusterv1beta1.Toleration{Operator: clusterv1beta1.TolerationOpExists, TolerationSeconds: new(int64(60))}, false},
	}
	for sentence, tc := range tests {
		t.Run(sentence, func(t *testing.T) {
			assert.Equal(t, tc.want, tolerates([]clusterv1beta1.Toleration{tc.t}, taint, noon()))
		})
	}
	assert.False(t, tolerates(nil, taint, noon()))
}

func TestATolerationThatEndsIsNotForGood(t *testing.T) {
	exists := clusterv1beta1.Toleration{Operator: clusterv1beta1.TolerationOpExists}
	ending := func(seconds int64) clusterv1beta1.Toleration {
		return clusterv1beta1.Toleration{Operator: clusterv1beta1.TolerationOpExists, TolerationSeconds: &seconds}
	}
	taint := clusterv1.Taint{Key: "k", Effect: clusterv1.TaintEffectNoSelect} // It has no time: no cluster has it yet.
	assert.True(t, toleratesForGood([]clusterv1beta1.Toleration{exists}, taint))
	assert.True(t, toleratesForGood([]clusterv1beta1.Toleration{ending(5), exists}, taint))
	for _, seconds := range []int64{0, 60, math.MaxInt64} {
		assert.False(t, toleratesForGood([]clusterv1beta1.Toleration{ending(seconds)}, taint), seconds)
	}
	assert.False(t, toleratesForGood(nil, taint))
}

// Shows: hub/annotations-in-step
func TestAnnotationsOfTheClusterAreCopiedAndKeptInStep(t *testing.T) {
	const p = names.AnnotationAddonPrefix
	type annotations = map[string]string
	tests := map[string]struct {
		addon, cluster, want annotations
		// known leaves out annotations that only OCM's hub copies.
		known bool
	}{
		"nothing to copy":              {nil, nil, nil, false},
		"only foreign annotations":     {annotations{"mine": "x"}, annotations{"other": "y"}, annotations{"mine": "x"}, false},
		"added":                        {nil, annotations{p + "b": "2", p + "a": "1"}, annotations{p + "a": "1", p + "b": "2", names.AnnotationCopied: "a,b"}, false},
		"already equal":                {annotations{p + "a": "1", names.AnnotationCopied: "a"}, annotations{p + "a": "1"}, annotations{p + "a": "1", names.AnnotationCopied: "a"}, false},
		"changed":                      {annotations{p + "a": "0", names.AnnotationCopied: "a"}, annotations{p + "a": "1"}, annotations{p + "a": "1", names.AnnotationCopied: "a"}, false},
		"removed":                      {annotations{p + "a": "0", "mine": "x", names.AnnotationCopied: "a"}, nil, annotations{"mine": "x", names.AnnotationCopied: ""}, false},
		"added again when it was lost": {annotations{names.AnnotationCopied: "a"}, annotations{p + "a": "1"}, annotations{p + "a": "1", names.AnnotationCopied: "a"}, false},
		"a person's own is kept":       {annotations{p + "values": "{}", names.AnnotationCopied: ""}, nil, annotations{p + "values": "{}", names.AnnotationCopied: ""}, false},
		"a person's own wins":          {annotations{p + "hosting-cluster-name": "mine"}, annotations{p + "hosting-cluster-name": "theirs"}, annotations{p + "hosting-cluster-name": "mine"}, false},
		"a person's own wins with a record": {
			annotations{p + "values": "{}", names.AnnotationCopied: ""}, annotations{p + "values": "{}"},
			annotations{p + "values": "{}", names.AnnotationCopied: ""}, false,
		},
		"an equal one without a record was copied": {
			annotations{p + "a": "1"}, annotations{p + "a": "1"}, annotations{p + "a": "1", names.AnnotationCopied: "a"}, false,
		},
		"the install namespace is not copied": {nil, annotations{names.AnnotationInstallNamespace: "ns"}, nil, false},
		"a similar prefix is not copied":      {nil, annotations{"addon.open-cluster-management.iox/a": "1"}, nil, false},
		"several at once": {
			annotations{p + "a": "1", p + "b": "2", p + "mine": "x", names.AnnotationCopied: "a,b"},
			annotations{p + "b": "3", p + "c": "4", p + "mine": "y"},
			annotations{p + "b": "3", p + "c": "4", p + "mine": "x", names.AnnotationCopied: "b,c"}, false,
		},
		"values are copied":          {nil, annotations{p + "values": "{}"}, annotations{p + "values": "{}", names.AnnotationCopied: "values"}, true},
		"the hosting cluster is not": {nil, annotations{names.AnnotationHostingCluster: "victim"}, nil, true},
		"nothing else is copied":     {nil, annotations{p + "a": "1", names.AnnotationHosts: "*"}, nil, true},
		"values that are gone":       {annotations{p + "values": "{}", names.AnnotationCopied: "values"}, nil, annotations{names.AnnotationCopied: ""}, true},
		"what was copied once stays": {
			annotations{p + "hosting-cluster-name": "h", names.AnnotationCopied: "hosting-cluster-name"}, annotations{p + "hosting-cluster-name": "victim"},
			annotations{p + "hosting-cluster-name": "h", names.AnnotationCopied: "hosting-cluster-name"}, true,
		},
		"what another hub copied is recorded": {
			annotations{p + "hosting-cluster-name": "h"}, annotations{p + "hosting-cluster-name": "h"},
			annotations{p + "hosting-cluster-name": "h", names.AnnotationCopied: "hosting-cluster-name"}, true,
		},
		"what was copied once goes with it": {
			annotations{p + "hosting-cluster-name": "h", names.AnnotationCopied: "hosting-cluster-name"}, nil,
			annotations{names.AnnotationCopied: ""}, true,
		},
	}
	for sentence, tc := range tests {
		t.Run(sentence, func(t *testing.T) {
			before := fmt.Sprint(tc.addon)
			got, changed := copied(tc.addon, tc.cluster, !tc.known)
			assert.Equal(t, before, fmt.Sprint(tc.addon), "the cache is not changed")
			if len(tc.want) == 0 {
				assert.Empty(t, got)
			} else {
				assert.Equal(t, tc.want, got)
			}
			assert.Equal(t, fmt.Sprint(tc.want) != before, changed)
			again, changed := copied(got, tc.cluster, !tc.known)
			assert.False(t, changed, "once is enough: %v", again)
		})
	}
}

func TestAnnotationsFollowTheClusterOnlyWherePlacementsInstall(t *testing.T) {
	const hosting = names.AnnotationHostingCluster
	onHost := func(f *facts) { f.managed.Annotations, f.asOCM = map[string]string{hosting: "host"}, true }
	after := decide(with(ready(true), installed, onHost)).update
	require.NotNil(t, after)
	assert.Equal(t, "host", after.GetAnnotations()[hosting])
	assert.Nil(t, decide(with(ready(false), installed, onHost)).update, "no placement selects the cluster")
	assert.Nil(t, decide(with(ready(true), installed, onHost, manual)).update, "people install the add-on")
	byHand := decide(with(ready(true), mine, onHost)).update
	require.NotNil(t, byHand, "it gets its owner")
	assert.NotContains(t, byHand.GetAnnotations(), hosting, "a person installed it")
	adopted := decide(with(ready(true), byOCM, onHost)).update
	assert.Equal(t, "host", adopted.GetAnnotations()[hosting], "placements install it from now on")
	assert.Nil(t, decide(with(ready(true), installed, func(f *facts) { f.managed = nil })).update)
	assert.True(t, strings.HasPrefix(hosting, names.AnnotationAddonPrefix))
}

// unselected is an add-on on a cluster, which the placements of some scenes do not select.
func unselected(managed *clusterv1.ManagedCluster, a absence, created time.Time, scenes ...*scene) candidate {
	addon := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: metav1.NewTime(created)}}
	c := candidate{managed: managed, absence: a, addon: addon}
	for _, s := range scenes {
		c.concerned = append(c.concerned, s.known())
	}
	return c
}
