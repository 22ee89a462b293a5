package rollout

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1alpha1 "open-cluster-management.io/api/cluster/v1alpha1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"

	"github.com/spokelet/spokelet/hub/fleet"
	"github.com/spokelet/spokelet/hub/rollout/planner"
	"github.com/spokelet/spokelet/internal/addonapi"
	"github.com/spokelet/spokelet/internal/addonconfig"
	"github.com/spokelet/spokelet/internal/addonconfig/fixture"
	"github.com/spokelet/spokelet/internal/names"
)

// Shows: hub/phase
func TestStateOfAnAddOn(t *testing.T) {
	template, config := fixture.Template("t"), fixture.DeploymentConfig("d")
	ago := func(d time.Duration) time.Time { return fixture.Noon().Add(-d) }
	progressing := func(reason string, since time.Time) metav1.Condition {
		return fixture.Condition("Progressing", metav1.ConditionTrue, reason, since)
	}
	unavailable := func(since time.Time) metav1.Condition {
		return fixture.Condition("Available", metav1.ConditionFalse, "ProbeUnavailable", since)
	}
	createdAgain := func(addOn *addonv1beta1.ManagedClusterAddOn) *addonv1beta1.ManagedClusterAddOn {
		addOn.UID = "another"
		return addOn
	}
	own := func(addOn *addonv1beta1.ManagedClusterAddOn) *addonv1beta1.ManagedClusterAddOn {
		addOn.Spec.Configs = []addonv1beta1.AddOnConfig{fixture.DeploymentConfig("gone")}
		return addOn
	}
	tests := map[string]struct {
		addOn    *addonv1beta1.ManagedClusterAddOn
		admitted string
		soak     time.Duration
		state    planner.State
		since    time.Time
	}{
		"a reference is missing": {addOn: fixture.AddOn("c"), state: planner.Pending},
		"another content is desired": {
			addOn: fixture.AddOn("c", fixture.Has(config, "d"), fixture.Has(template, "old")), state: planner.Pending,
		},
		"one in flight does not hide another that is pending": {
			addOn: fixture.With(fixture.AddOn("c", fixture.Desires(config, "d"), fixture.Has(template, "old")),
				progressing("Progressing", ago(time.Minute))),
			state: planner.Pending,
		},
		"a reference without a desired config is pending and does not crash": {
			addOn: fixture.AddOn("c", addonv1beta1.ConfigReference{ConfigGroupResource: template.ConfigGroupResource}),
			state: planner.Pending,
		},
		"one that was admitted keeps its slot before its status shows it": {
			addOn: fixture.AddOn("c", fixture.Has(template, "old")), admitted: "the target", state: planner.InFlight,
			since: ago(time.Second),
		},
		"one that was created again has nothing of the admission of the former": {
			addOn: createdAgain(fixture.AddOn("c", fixture.Has(template, "old"))), admitted: "the target", state: planner.Pending,
		},
		"one that was admitted to another content is pending": {
			addOn: fixture.AddOn("c", fixture.Has(template, "old")), admitted: "another", state: planner.Pending,
		},
		"in flight": {
			addOn: fixture.With(fixture.AddOn("c", fixture.Desires(config, "d"), fixture.Desires(template, "t")),
				progressing("Progressing", ago(time.Minute))),
			state: planner.InFlight, since: ago(time.Minute),
		},
		"in flight, and a configuration of its own does not exist: it is held": {
			addOn: own(fixture.With(fixture.AddOn("c", fixture.Desires(config, "d"), fixture.Desires(template, "t")),
				progressing("Progressing", ago(time.Minute)))),
			state: planner.Pending,
		},
		"failed, and a configuration of its own does not exist": {
			addOn: own(fixture.With(fixture.AddOn("c", fixture.Desires(config, "d"), fixture.Has(template, "t")),
				progressing("Failed", ago(time.Minute)))),
			state: planner.Failed, since: ago(time.Minute),
		},
		"it has what the rollout gives it, and a configuration of its own does not exist": {
			addOn: own(fixture.With(fixture.AddOn("c", fixture.Has(config, "d"), fixture.Has(template, "t")),
				progressing("Completed", ago(time.Minute)))),
			state: planner.Succeeded, since: ago(time.Minute),
		},
		"it had soaked before it broke, and is complete again": {
			addOn: fixture.With(fixture.AddOn("c", fixture.Has(config, "d"), fixture.Has(template, "t")),
				progressing("Completed", ago(time.Second)), soaked(metav1.ConditionTrue, ago(time.Hour), fixture.Desires(config, "d"), fixture.Desires(template, "t"))),
			soak: time.Hour, state: planner.Succeeded,
		},
		"the content before it had soaked before it broke": {
			addOn: fixture.With(fixture.AddOn("c", fixture.Has(config, "d"), fixture.Desires(template, "t")),
				progressing("Progressing", ago(time.Second)),
				soaked(metav1.ConditionTrue, ago(time.Hour), fixture.Desires(config, "d"), fixture.Desires(template, "old"))),
			soak: time.Hour, state: planner.InFlight, since: ago(time.Second),
		},
		"in flight before there is a condition": {
			addOn: fixture.AddOn("c", fixture.Desires(config, "d"), fixture.Desires(template, "t")), state: planner.InFlight,
		},
		"failed": {
			addOn: fixture.With(fixture.AddOn("c", fixture.Desires(config, "d"), fixture.Has(template, "t")),
				progressing("Failed", ago(time.Minute))),
			state: planner.Failed, since: ago(time.Minute),
		},
		"succeeded": {
			addOn: fixture.With(fixture.AddOn("c", fixture.Has(config, "d"), fixture.Has(template, "t")),
				progressing("Completed", ago(time.Minute))),
			state: planner.Succeeded, since: ago(time.Minute),
		},
		"succeeded once, and its works are not ready now": {
			addOn: fixture.With(fixture.AddOn("c", fixture.Has(config, "d"), fixture.Has(template, "t")),
				progressing("Progressing", ago(time.Minute))),
			state: planner.Succeeded,
		},
		"not available since before it had the content": {
			addOn: fixture.With(fixture.AddOn("c", fixture.Has(config, "d"), fixture.Has(template, "t")),
				progressing("Completed", ago(time.Minute)), unavailable(ago(2*time.Minute))),
			state: planner.Failed, since: ago(time.Minute),
		},
		"not available within the time that it must be well": {
			addOn: fixture.With(fixture.AddOn("c", fixture.Has(config, "d"), fixture.Has(template, "t")),
				progressing("Completed", ago(time.Minute)), unavailable(ago(50*time.Second))),
			soak: 30 * time.Second, state: planner.Failed, since: ago(time.Minute),
		},
		"not available later is no matter of the rollout": {
			addOn: fixture.With(fixture.AddOn("c", fixture.Has(config, "d"), fixture.Has(template, "t")),
				progressing("Completed", ago(time.Minute)), unavailable(ago(time.Second))),
			soak: 30 * time.Second, state: planner.Succeeded, since: ago(time.Minute),
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			f := facts{
				now: fixture.Noon(), cma: fixture.NewCMA([]addonv1beta1.AddOnConfig{config}, fixture.Placement("p", template)),
				states:   addonconfig.States{template: {Hash: "t"}, config: {Hash: "d"}, fixture.DeploymentConfig("gone"): {Missing: true}},
				admitted: map[string]admission{"c": {target: test.admitted, granted: true, since: ago(time.Second)}},
			}
			m := newMember(test.addOn, nil)
			s := &survey{f: f, soak: test.soak, of: &targets{common: "the target"}}
			state, since, _ := s.state(m, f.target(m.addOn(), 0), f.ways[m.cluster])
			assert.Equal(t, test.state, state)
			assert.Equal(t, test.since, since)
		})
	}
}

// Shows: hub/agents-clocks
func TestAFailureInTheSoakIsSeenByTheClockOfTheHub(t *testing.T) {
	const soak = 10 * time.Minute
	template := fixture.Template("t")
	addOn := func(uid types.UID, available *metav1.Condition) *member {
		a := fixture.With(fixture.AddOn("c", fixture.Has(template, "t")),
			fixture.Condition("Progressing", metav1.ConditionFalse, "Completed", fixture.Noon()))
		a.UID = uid
		if available != nil {
			fixture.With(a, *available)
		}
		return newMember(a, nil)
	}
	down := func(since time.Duration) *metav1.Condition {
		return new(fixture.Condition("Available", metav1.ConditionFalse, "LeaseUpdateStopped", fixture.Noon().Add(since)))
	}
	at := func(d time.Duration) time.Time { return fixture.Noon().Add(d) }
	well := addOn("u", nil)
	for sentence, tc := range map[string]struct {
		is     *member
		before *member
		seen   time.Duration
		want   planner.State
	}{
		"it falls in the soak, by a clock that is two hours ahead": {addOn("u", down(2*time.Hour)), well, time.Minute, planner.Failed},
		"it falls a week later, by a clock that is a week behind":  {addOn("u", down(0)), well, 7 * 24 * time.Hour, planner.Succeeded},
		"it stays as it was seen when the condition is written again": {
			addOn("u", down(3*time.Hour)), addOn("u", down(0)).saw(well, at(time.Minute)), time.Hour, planner.Failed,
		},
		"at first sight the condition counts":       {addOn("u", down(time.Minute)), nil, time.Hour, planner.Failed},
		"at first sight, but never later than now":  {addOn("u", down(2*time.Hour)), nil, time.Minute, planner.Failed},
		"another add-on of the name was never seen": {addOn("new", down(time.Minute)), well, time.Hour, planner.Failed},
		"it is well": {addOn("u", nil), addOn("u", down(0)), time.Minute, planner.Succeeded},
	} {
		t.Run(sentence, func(t *testing.T) {
			f := facts{cma: fixture.NewCMA(nil, fixture.Placement("p", template)), states: addonconfig.States{template: {Hash: "t"}}}
			m := tc.is.saw(tc.before, at(tc.seen))
			s := &survey{f: f, soak: soak, of: &targets{}}
			state, _, _ := s.state(m, f.target(m.addOn(), 0), f.ways[m.cluster])
			assert.Equal(t, tc.want, state)
		})
	}
}

// Shows: hub/created-again
func TestAnAddOnThatIsCreatedAgainIsAskedAboutAnew(t *testing.T) {
	template := fixture.Template("t")
	target := []addonv1beta1.ConfigReference{fixture.Desires(template, "t")}
	plan := func(r *Reconciler, uid types.UID, now time.Time) admission {
		addOn := fixture.AddOn("c")
		addOn.UID = uid
		before, _ := r.decided.Get("hello")
		p := decide(facts{
			now: now, cma: fixture.NewCMA(nil, fixture.Placement("p", template)), states: addonconfig.States{template: {Hash: "t"}},
			placements: []*fleet.Decisions{selects("c")}, members: membersOf(addOn), admitted: before.admissions,
		})
		r.remember("hello", p)
		return p.admissions["c"]
	}
	r := &Reconciler{}
	assert.Equal(t, fixture.Noon(), plan(r, "first", fixture.Noon()).since)
	assert.Equal(t, fixture.Noon(), plan(r, "first", fixture.Noon().Add(time.Hour)).since)
	again := fixture.AddOn("c")
	again.UID = "second"
	assert.False(t, r.Admission(again, target).Decided(), "no plan knows it yet")
	assert.Equal(t, fixture.Noon().Add(2*time.Hour), plan(r, "second", fixture.Noon().Add(2*time.Hour)).since,
		"its deadline does not count from the admission of the former")
	assert.True(t, r.Admission(again, target).Granted)
}

// Shows: hub/rollout-awaited
func TestTheFirstPlanHasTheClustersWhoseAddOnIsNotInstalledYet(t *testing.T) {
	strategy := clusterv1alpha1.RolloutStrategy{
		Type: clusterv1alpha1.Progressive, Progressive: &clusterv1alpha1.RolloutProgressive{
			MandatoryDecisionGroups: clusterv1alpha1.MandatoryDecisionGroups{
				MandatoryDecisionGroups: []clusterv1alpha1.MandatoryDecisionGroup{{GroupName: "canary"}},
			},
		},
	}
	going := fixture.AddOn("canary-1")
	going.DeletionTimestamp = new(metav1.NewTime(fixture.Noon()))
	for sentence, test := range map[string]struct {
		addOns []*addonv1beta1.ManagedClusterAddOn
		served map[string]bool
		want   []string
	}{
		"the canary gets its add-on last":                {served: map[string]bool{"canary-1": true}},
		"the add-on of the canary is going":              {addOns: []*addonv1beta1.ManagedClusterAddOn{going}, served: map[string]bool{"canary-1": true}},
		"the canary never gets the add-on":               {want: []string{"a", "b"}},
		"the add-on of the canary goes with its cluster": {addOns: []*addonv1beta1.ManagedClusterAddOn{going}, want: []string{"a", "b"}},
	} {
		t.Run(sentence, func(t *testing.T) {
			f := facts{
				now: fixture.Noon(), cma: fixture.NewCMA(nil, fixture.ByStrategy(strategy, fixture.Placement("p", fixture.Template("t")))),
				states:     addonconfig.States{fixture.Template("t"): {Hash: "t"}},
				placements: []*fleet.Decisions{selects("a", "b", "canary-1")}, served: test.served,
				members: membersOf(append(test.addOns, fixture.AddOn("a"), fixture.AddOn("b"))...),
			}
			f.placements[0].Groups["canary-1"] = fleet.Group{Index: 1, Name: "canary"}
			assert.Equal(t, test.want, decide(f).placements[0].New)
		})
	}
}

// Shows: hub/rollout-awaited
func TestAnAddOnThatDoesNotGoIsAwaitedUntilTheDeadline(t *testing.T) {
	going := fixture.AddOn("a")
	going.DeletionTimestamp = new(metav1.NewTime(fixture.Noon()))
	f := facts{
		cma: fixture.NewCMA(nil, fixture.ByStrategy(clusterv1alpha1.RolloutStrategy{
			Type: clusterv1alpha1.ProgressivePerGroup, ProgressivePerGroup: &clusterv1alpha1.RolloutProgressivePerGroup{
				RolloutConfig: clusterv1alpha1.RolloutConfig{ProgressDeadline: "10m"},
			},
		}, fixture.Placement("p", fixture.Template("t")))),
		states:     addonconfig.States{fixture.Template("t"): {Hash: "t"}},
		placements: []*fleet.Decisions{selects("a", "b")}, served: map[string]bool{"a": true},
		members: membersOf(going, fixture.AddOn("b")),
	}
	f.placements[0].Groups["b"] = fleet.Group{Index: 1}
	f.now = fixture.Noon().Add(9 * time.Minute)
	p := decide(f)
	assert.Empty(t, p.placements[0].New)
	assert.Equal(t, fixture.Noon().Add(10*time.Minute), p.wake)
	f.now = p.wake
	assert.Equal(t, []string{"b"}, decide(f).placements[0].New)
}

// Shows: hub/fix-first
func TestAFixReachesTheBrokenClustersFirst(t *testing.T) {
	bad, good := fixture.Template("bad"), fixture.Template("good")
	completed := fixture.Condition("Progressing", metav1.ConditionFalse, "Completed", fixture.Noon().Add(-time.Hour))
	progressing := fixture.Condition("Progressing", metav1.ConditionTrue, "Progressing", fixture.Noon().Add(-time.Hour))
	down := fixture.Condition("Available", metav1.ConditionFalse, "NoPod", fixture.Noon().Add(-time.Minute))
	strategy := clusterv1alpha1.RolloutStrategy{
		Type: clusterv1alpha1.Progressive, Progressive: &clusterv1alpha1.RolloutProgressive{MaxConcurrency: intstr.FromInt32(1)},
	}
	for sentence, zz := range map[string]*addonv1beta1.ManagedClusterAddOn{
		"one that is on its way to the bad content":    fixture.With(fixture.AddOn("zz", fixture.Desires(bad, "bad")), progressing),
		"one whose agent is down":                      fixture.With(fixture.AddOn("zz", fixture.Has(bad, "bad")), completed, down),
		"one whose works are not ready any more":       fixture.With(fixture.AddOn("zz", fixture.Has(bad, "bad")), progressing),
		"one with the former content, but not healthy": fixture.With(fixture.AddOn("zz", fixture.Has(good, "old")), completed, down),
	} {
		t.Run(sentence, func(t *testing.T) {
			p := decide(facts{
				now: fixture.Noon(), cma: fixture.NewCMA(nil, fixture.ByStrategy(strategy, fixture.Placement("p", good))),
				states:     addonconfig.States{good: {Hash: "fix"}},
				placements: []*fleet.Decisions{selects("aa", "bb", "zz")},
				members: membersOf(fixture.AddOn("aa"),
					fixture.With(fixture.AddOn("bb", fixture.Has(good, "old")), completed), zz),
			})
			assert.Equal(t, []string{"zz"}, p.placements[0].New)
		})
	}
}

// Shows: hub/fix-first
func TestAClusterThatSoaksComesAfterTheBrokenOnes(t *testing.T) {
	bad, good := fixture.Template("bad"), fixture.Template("good")
	completed := fixture.Condition("Progressing", metav1.ConditionFalse, "Completed", fixture.Noon().Add(-time.Minute))
	down := fixture.Condition("Available", metav1.ConditionFalse, "NoPod", fixture.Noon().Add(-time.Minute))
	p := decide(facts{
		now: fixture.Noon(), states: addonconfig.States{good: {Hash: "fix"}},
		cma: fixture.NewCMA(nil, fixture.ByStrategy(clusterv1alpha1.RolloutStrategy{
			Type: clusterv1alpha1.Progressive, Progressive: &clusterv1alpha1.RolloutProgressive{MaxConcurrency: intstr.FromInt32(1)},
		}, fixture.Placement("p", good))),
		placements: []*fleet.Decisions{selects("bb", "zz")},
		members: membersOf(fixture.With(fixture.AddOn("bb", fixture.Desires(bad, "bad")), completed),
			fixture.With(fixture.AddOn("zz", fixture.Has(bad, "bad")), completed, down)),
	})
	assert.Equal(t, []string{"zz"}, p.placements[0].New)
}

// Shows: hub/counts
func TestConcludePlanCounts(t *testing.T) {
	t1 := fixture.Template("t")
	found := addonconfig.States{t1: {Hash: "h"}, fixture.DeploymentConfig("d"): {Hash: "d"}, fixture.Template("gone"): {Missing: true}}
	done := func(c string) *addonv1beta1.ManagedClusterAddOn { return fixture.AddOn(c, fixture.Has(t1, "h")) }
	flying := func(c, reason string, since time.Time) *addonv1beta1.ManagedClusterAddOn {
		return fixture.With(fixture.AddOn(c, fixture.Desires(t1, "h")), fixture.Condition("Progressing", metav1.ConditionTrue, reason, since))
	}
	deadline := clusterv1alpha1.RolloutStrategy{Type: clusterv1alpha1.All, All: &clusterv1alpha1.RolloutAll{
		RolloutConfig: clusterv1alpha1.RolloutConfig{ProgressDeadline: "10m"},
	}}
	unusable := clusterv1alpha1.RolloutStrategy{
		Type: clusterv1alpha1.ProgressivePerGroup, ProgressivePerGroup: &clusterv1alpha1.RolloutProgressivePerGroup{
			RolloutConfig: clusterv1alpha1.RolloutConfig{ProgressDeadline: "5|"},
		},
	}
	oneByOne := clusterv1alpha1.RolloutStrategy{
		Type:        clusterv1alpha1.Progressive,
		Progressive: &clusterv1alpha1.RolloutProgressive{MaxConcurrency: intstr.FromInt32(1)},
	}
	waiting := func(c string) *addonv1beta1.ManagedClusterAddOn {
		return fixture.With(fixture.AddOn(c, fixture.Has(t1, "old")), fixture.Condition("Configured", metav1.ConditionFalse,
			"ConfigurationsNotConfigured", fixture.Noon().Add(-time.Hour)))
	}
	overriding := fixture.AddOn("c2", fixture.Has(fixture.DeploymentConfig("d"), "d"), fixture.Has(t1, "h"))
	overriding.Spec.Configs = []addonv1beta1.AddOnConfig{fixture.DeploymentConfig("d")}
	tests := map[string]struct {
		placements []addonv1beta1.PlacementStrategy
		facts      []*fleet.Decisions
		addons     []*addonv1beta1.ManagedClusterAddOn
		// want are the messages of the placements, says parts of the one of the first.
		want    []string
		says    []string
		recheck time.Time
	}{
		"no cluster is selected": {
			placements: []addonv1beta1.PlacementStrategy{fixture.Placement("p", t1)},
			facts:      []*fleet.Decisions{selects()},
			want: []string{"selected clusters 0. configured addons 0/0 progressing..., 0 failed 0 timeout. placement ns/p " +
				"selects no cluster: no placement controller has decided it; start the hub manager with --placement=true, or one of OCM."},
		},
		"add-ons are not created yet": {
			placements: []addonv1beta1.PlacementStrategy{fixture.Placement("p", t1)},
			facts:      []*fleet.Decisions{selects("c1", "c2")},
			want:       []string{"selected clusters 2. configured addons 0/2 progressing..., 0 failed 0 timeout."},
		},
		"one of three is done, one in flight, one to apply": {
			placements: []addonv1beta1.PlacementStrategy{fixture.Placement("p", t1)},
			facts:      []*fleet.Decisions{selects("c1", "c2", "c3")},
			addons: []*addonv1beta1.ManagedClusterAddOn{
				done("c1"), flying("c2", "Progressing", fixture.Noon()), fixture.AddOn("c3"), done("by-hand"),
			},
			want: []string{"selected clusters 3. configured addons 3/3 progressing..., 0 failed 0 timeout."},
		},
		"all are done, one with a config of its own": {
			placements: []addonv1beta1.PlacementStrategy{fixture.Placement("p", t1)},
			facts:      []*fleet.Decisions{selects("c1", "c2")},
			addons:     []*addonv1beta1.ManagedClusterAddOn{done("c1"), overriding},
			want: []string{
				"selected clusters 2. configured addons 2/2 completed with no errors, 0 failed 0 timeout.",
			},
		},
		"the last placement owns a cluster that several select": {
			placements: []addonv1beta1.PlacementStrategy{fixture.Placement("p"), fixture.Placement("q", t1)},
			facts:      []*fleet.Decisions{selects("c1", "c2"), selects("c2", "c3")},
			addons:     []*addonv1beta1.ManagedClusterAddOn{fixture.AddOn("c1"), done("c2"), fixture.AddOn("c3")},
			want: []string{
				"selected clusters 2. configured addons 1/1 completed with no errors, 0 failed 0 timeout.",
				"selected clusters 2. configured addons 2/2 progressing..., 0 failed 0 timeout.",
			},
		},
		"those beyond the deadline are timed out, the next one is awaited": {
			placements: []addonv1beta1.PlacementStrategy{fixture.ByStrategy(deadline, fixture.Placement("p", t1))},
			facts:      []*fleet.Decisions{selects("c1", "c2", "c3", "c4")},
			addons: []*addonv1beta1.ManagedClusterAddOn{
				flying("c1", "Progressing", fixture.Noon().Add(-time.Minute)),
				flying("c2", "Progressing", fixture.Noon().Add(-2*time.Minute)),
				flying("c3", "Progressing", fixture.Noon().Add(-10*time.Minute)),
				flying("c4", "Failed", fixture.Noon().Add(-time.Hour)),
			},
			want:    []string{"selected clusters 4. configured addons 2/4 progressing..., 1 failed 2 timeout."},
			recheck: fixture.Noon().Add(8 * time.Minute),
		},
		"a strategy with a field that cannot be used says so and counts nothing as progressing": {
			placements: []addonv1beta1.PlacementStrategy{fixture.ByStrategy(unusable, fixture.Placement("p", t1))},
			facts:      []*fleet.Decisions{selects("c1", "c2")},
			addons:     []*addonv1beta1.ManagedClusterAddOn{fixture.AddOn("c1"), flying("c2", "Progressing", fixture.Noon())},
			says:       []string{"configured addons 1/2 progressing..., 0 failed 0 timeout.", "progressDeadline"},
		},
		"clusters that wait for their turn are not stuck": {
			placements: []addonv1beta1.PlacementStrategy{fixture.ByStrategy(oneByOne, fixture.Placement("p", t1))},
			facts:      []*fleet.Decisions{selects("c1", "c2", "c3")},
			addons: []*addonv1beta1.ManagedClusterAddOn{
				flying("c1", "Progressing", fixture.Noon()), waiting("c2"), waiting("c3"),
			},
			want: []string{"selected clusters 3. configured addons 1/3 progressing..., 0 failed 0 timeout."},
		},
		"but by another cause they are, since that began": {
			placements: []addonv1beta1.PlacementStrategy{fixture.ByStrategy(oneByOne, fixture.Placement("p", t1))},
			facts:      []*fleet.Decisions{selects("c1", "c2", "c3")},
			addons: []*addonv1beta1.ManagedClusterAddOn{
				flying("c1", "Progressing", fixture.Noon()),
				fixture.With(waiting("c2"), fixture.Condition("Available", metav1.ConditionFalse, "NoPod", fixture.Noon().Add(-time.Second))),
				fixture.With(waiting("c3"), fixture.Condition("Available", metav1.ConditionFalse, "NoPod", fixture.Noon().Add(-time.Minute))),
			},
			want: []string{"selected clusters 3. configured addons 1/3 progressing..., 0 failed 0 timeout. " +
				"1 cluster is stuck, the first is c3: Available is False (NoPod): ."},
			recheck: fixture.Noon().Add(4 * time.Second),
		},
		"one whose configuration does not exist is stuck by that": {
			placements: []addonv1beta1.PlacementStrategy{fixture.Placement("p", fixture.Template("gone"))},
			facts:      []*fleet.Decisions{selects("c1")},
			addons:     []*addonv1beta1.ManagedClusterAddOn{waiting("c1")},
			says:       []string{"1 cluster is stuck, the first is c1: Configured is False"},
		},
		"a missing config is named and its add-ons are not on their way": {
			placements: []addonv1beta1.PlacementStrategy{fixture.Placement("p", fixture.Template("gone"))},
			facts:      []*fleet.Decisions{selects("c1")},
			addons:     []*addonv1beta1.ManagedClusterAddOn{done("c1")},
			want: []string{"selected clusters 1. configured addons 0/1 progressing..., 0 failed 0 timeout. " +
				`addontemplates "gone" does not exist.`},
		},
		"a missing placement is named and stops no later one": {
			placements: []addonv1beta1.PlacementStrategy{fixture.Placement("gone", t1), fixture.Placement("p", t1)},
			facts:      []*fleet.Decisions{missing(), selects("c1")},
			addons:     []*addonv1beta1.ManagedClusterAddOn{done("c1")},
			want: []string{
				"selected clusters 0. configured addons 0/0 progressing..., 0 failed 0 timeout. " +
					"placement ns/gone does not exist: create it, or correct spec.installStrategy.placements.",
				"selected clusters 1. configured addons 1/1 completed with no errors, 0 failed 0 timeout.",
			},
			recheck: fixture.Noon().Add(fleet.FailoverPeriod),
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			f := facts{
				now: fixture.Noon(), cma: fixture.NewCMA(nil, test.placements...),
				placements: test.facts, members: membersOf(test.addons...), states: found, served: map[string]bool{"c1": true, "c2": true},
			}
			before := f.cma.DeepCopy()
			after, recheck := concluded(f)
			assert.Equal(t, before, f.cma, "the facts are not changed")
			assert.Equal(t, test.recheck, recheck)
			require.Len(t, after.Status.InstallProgressions, len(test.placements))
			for i, progression := range after.Status.InstallProgressions {
				assert.Equal(t, test.placements[i].PlacementRef, progression.PlacementRef)
				got := meta.FindStatusCondition(progression.Conditions, "Progressing")
				require.NotNil(t, got)
				if test.want != nil {
					assert.Equal(t, test.want[i], got.Message)
				}
				for _, part := range test.says {
					assert.Contains(t, got.Message, part)
				}
				if decide(f).placements[i].Counts.Complete() {
					assert.Equal(t, metav1.ConditionFalse, got.Status)
					assert.Equal(t, "Completed", got.Reason)
				} else {
					assert.Equal(t, metav1.ConditionTrue, got.Status)
					assert.Equal(t, "Progressing", got.Reason)
				}
			}
			f.cma = after
			again, _ := concluded(f)
			assert.Equal(t, after, again, "a second pass changes nothing")
		})
	}
}

func TestConcludePlanReferences(t *testing.T) {
	found := addonconfig.States{
		fixture.Template("t"): {Hash: "t"}, fixture.DeploymentConfig("d"): {Hash: "d"}, fixture.DeploymentConfig("e"): {Hash: "e"},
		fixture.Template("gone"): {Missing: true}, fixture.ConfigMap("c"): {Unread: "its manager reports it"},
	}
	cma := fixture.NewCMA(
		[]addonv1beta1.AddOnConfig{fixture.Template(addonapi.ReservedNoDefault), fixture.DeploymentConfig("d"), fixture.ConfigMap("c")},
		fixture.Placement("p", fixture.Template("t"), fixture.DeploymentConfig("e"), fixture.DeploymentConfig("d")),
		fixture.Placement("q", fixture.Template("gone"), fixture.ConfigMap("c")),
	)
	cma.Status.DefaultConfigReferences = []addonv1beta1.DefaultConfigReference{
		{ConfigGroupResource: fixture.ConfigMap("c").ConfigGroupResource, DesiredConfig: fixture.Hashed(fixture.ConfigMap("c"), "reported")},
	}
	cma.Status.InstallProgressions = []addonv1beta1.InstallProgression{
		{
			PlacementRef: fixture.Placement("q").PlacementRef,
			ConfigReferences: []addonv1beta1.InstallConfigReference{
				{
					ConfigGroupResource: fixture.Template("").ConfigGroupResource, DesiredConfig: fixture.Hashed(fixture.Template("gone"), "good"),
					LastAppliedConfig: fixture.Hashed(fixture.Template("gone"), "applied"), LastKnownGoodConfig: fixture.Hashed(fixture.Template("gone"), "known"),
				},
			},
			Conditions: []metav1.Condition{fixture.Condition("Progressing", metav1.ConditionTrue, "Progressing", fixture.Noon().Add(-time.Hour))},
		},
		{PlacementRef: fixture.Placement("removed").PlacementRef},
	}
	f := facts{
		now: fixture.Noon(), cma: cma, states: found,
		placements: []*fleet.Decisions{selects("c1"), selects("c2")},
		members: membersOf(fixture.AddOn("c1", fixture.Has(fixture.ConfigMap("c"), "reported"),
			fixture.Has(fixture.DeploymentConfig("e"), "e"), fixture.Has(fixture.DeploymentConfig("d"), "d"),
			fixture.Has(fixture.Template("t"), "t"))),
	}
	after, _ := concluded(f)
	assert.Equal(t, []addonv1beta1.DefaultConfigReference{
		{ConfigGroupResource: fixture.DeploymentConfig("").ConfigGroupResource, DesiredConfig: fixture.Hashed(fixture.DeploymentConfig("d"), "d")},
		{ConfigGroupResource: fixture.ConfigMap("").ConfigGroupResource, DesiredConfig: fixture.Hashed(fixture.ConfigMap("c"), "reported")},
	}, after.Status.DefaultConfigReferences)

	require.Len(t, after.Status.InstallProgressions, 2)
	applied := func(config addonv1beta1.AddOnConfig, hash string) addonv1beta1.InstallConfigReference {
		return addonv1beta1.InstallConfigReference{
			ConfigGroupResource: config.ConfigGroupResource, DesiredConfig: fixture.Hashed(config, hash),
			LastAppliedConfig: fixture.Hashed(config, hash), LastKnownGoodConfig: fixture.Hashed(config, hash),
		}
	}
	assert.Equal(t, []addonv1beta1.InstallConfigReference{
		applied(fixture.DeploymentConfig("e"), "e"), applied(fixture.DeploymentConfig("d"), "d"), applied(fixture.Template("t"), "t"),
	}, after.Status.InstallProgressions[0].ConfigReferences, "ordered by resource, applied once all are done")

	second := after.Status.InstallProgressions[1]
	assert.Equal(t, []addonv1beta1.InstallConfigReference{
		{ConfigGroupResource: fixture.ConfigMap("").ConfigGroupResource, DesiredConfig: fixture.Hashed(fixture.ConfigMap("c"), "")},
		{
			ConfigGroupResource: fixture.Template("").ConfigGroupResource, DesiredConfig: fixture.Hashed(fixture.Template("gone"), "good"),
			LastAppliedConfig: fixture.Hashed(fixture.Template("gone"), "applied"), LastKnownGoodConfig: fixture.Hashed(fixture.Template("gone"), "known"),
		},
	}, second.ConfigReferences, "a config that was added or that went takes nothing from what is known")
	assert.Equal(t, fixture.Noon().Add(-time.Hour), second.Conditions[0].LastTransitionTime.Time)
}

func TestConcludePlanByLifeCycle(t *testing.T) {
	old := []addonv1beta1.InstallProgression{{PlacementRef: fixture.Placement("old").PlacementRef}}
	defaults := []addonv1beta1.AddOnConfig{fixture.Template("t")}
	tests := map[string]struct {
		cma       *addonv1beta1.ClusterManagementAddOn
		lifecycle string
		want      []addonv1beta1.InstallProgression
	}{
		"by hand, placements do not count":                       {cma: fixture.NewCMA(defaults)},
		"by hand and managed by itself, placements do not count": {cma: fixture.NewCMA(defaults), lifecycle: "self"},
		"by placements and managed by itself, progressions are not ours": {
			cma: fixture.NewCMA(defaults, fixture.Placement("p")), lifecycle: "self", want: old,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			test.cma.Annotations = map[string]string{names.AnnotationLifecycle: test.lifecycle}
			test.cma.Status.InstallProgressions = old
			after, _ := concluded(facts{
				now: fixture.Noon(), cma: test.cma, states: addonconfig.States{fixture.Template("t"): {Hash: "h"}},
			})
			assert.Equal(t, test.want, after.Status.InstallProgressions)
			assert.Len(t, after.Status.DefaultConfigReferences, 1)
		})
	}
}

func BenchmarkPlan(b *testing.B) {
	f := facts{
		now: fixture.Noon(),
		cma: fixture.NewCMA([]addonv1beta1.AddOnConfig{fixture.DeploymentConfig("d")},
			fixture.Placement("p", fixture.Template("t"))),
		states: addonconfig.States{fixture.Template("t"): {Hash: "t"}, fixture.DeploymentConfig("d"): {Hash: "d"}},
	}
	clusters := make([]string, 0, 3000)
	var addOns []*addonv1beta1.ManagedClusterAddOn
	for i := range 3000 {
		clusters = append(clusters, fmt.Sprintf("c%d", i))
		addOns = append(addOns, fixture.AddOn(clusters[i], fixture.Has(fixture.DeploymentConfig("d"), "d"),
			fixture.Has(fixture.Template("t"), "t")))
	}
	f.placements, f.members = []*fleet.Decisions{selects(clusters...)}, membersOf(addOns...)
	for b.Loop() {
		concluded(f)
	}
}

// concluded returns the new status for the facts, and when to look again.
func concluded(f facts) (*addonv1beta1.ClusterManagementAddOn, time.Time) {
	p := decide(f)
	return conclude(f, p), p.wake
}

func membersOf(addOns ...*addonv1beta1.ManagedClusterAddOn) map[string]*member {
	members := map[string]*member{}
	for _, addOn := range addOns {
		members[addOn.Namespace] = newMember(addOn, nil)
	}
	return members
}

// selects is a Placement whose decisions are complete.
func selects(clusters ...string) *fleet.Decisions {
	d := &fleet.Decisions{Placement: &clusterv1beta1.Placement{}, Groups: map[string]fleet.Group{}}
	for _, cluster := range clusters {
		d.Groups[cluster] = fleet.Group{}
	}
	d.Names = slices.Sorted(maps.Keys(d.Groups))
	return d
}

// missing is a Placement that does not exist.
func missing() *fleet.Decisions {
	return fleet.NewDecisions(fleet.Seen{Key: types.NamespacedName{Namespace: "ns", Name: "gone"}, Own: true}, fixture.Noon())
}

// Shows: hub/rollout-incomplete
func TestNoClusterIsAdmittedWhileDecisionsAreNotComplete(t *testing.T) {
	template := fixture.Template("t")
	torn := func(clusters ...string) *fleet.Decisions {
		d := selects(clusters...)
		d.Incomplete, d.DoubtedSince = errors.New("placement ns/p is writing its PlacementDecisions"), fixture.Noon()
		return d
	}
	one := clusterv1alpha1.RolloutStrategy{
		Type: clusterv1alpha1.Progressive, Progressive: &clusterv1alpha1.RolloutProgressive{MaxConcurrency: intstr.FromInt32(1)},
	}
	first, second := fixture.Placement("p", template), fixture.Placement("q", fixture.Template("u"))
	first.RolloutStrategy, second.RolloutStrategy = one, one
	plan := func(admitted map[string]admission, placements ...*fleet.Decisions) plan {
		return decide(facts{
			now: fixture.Noon(), cma: fixture.NewCMA(nil, []addonv1beta1.PlacementStrategy{first, second}[:len(placements)]...),
			states:     addonconfig.States{template: {Hash: "t"}, fixture.Template("u"): {Hash: "u"}},
			placements: placements, members: membersOf(fixture.AddOn("a"), fixture.AddOn("b"), fixture.AddOn("c")), admitted: admitted,
		})
	}
	whole := plan(nil, selects("a", "b", "c")).admissions
	require.True(t, whole["a"].granted)
	require.False(t, whole["b"].granted)

	t.Run("one that is on its way and seems to be gone frees no place", func(t *testing.T) {
		p := plan(whole, torn("b", "c")).admissions
		assert.Equal(t, whole, p)
	})
	t.Run("one that waits is told why", func(t *testing.T) {
		assert.Contains(t, plan(nil, torn("a")).admissions["a"].reason,
			"waits until it is known which clusters are selected: placement ns/p is writing its PlacementDecisions")
	})
	t.Run("one that seems to belong to an earlier placement does not get its configuration", func(t *testing.T) {
		for _, gone := range []*fleet.Decisions{torn(), missing()} {
			p := plan(nil, selects("a"), gone).admissions
			assert.False(t, p["a"].granted)
			assert.NotEmpty(t, p["a"].reason)
		}
	})
	t.Run("one that is gone for good holds nobody up", func(t *testing.T) {
		gone := fleet.NewDecisions(fleet.Seen{Key: types.NamespacedName{Namespace: "ns", Name: "gone"}, Own: true}, fixture.Noon().Add(-fleet.FailoverPeriod))
		assert.True(t, plan(nil, selects("a"), gone).admissions["a"].granted)
		assert.False(t, plan(nil, selects("a"), missing()).wake.IsZero(), "until then it is looked at again")
	})
	t.Run("one that never decides holds up no others for ever, and its own clusters", func(t *testing.T) {
		never := torn("b")
		never.DoubtedSince = fixture.Noon().Add(-fleet.FailoverPeriod)
		p := plan(nil, selects("a"), never).admissions
		assert.True(t, p["a"].granted)
		assert.False(t, p["b"].granted)
		assert.False(t, plan(nil, selects("a"), torn("b")).wake.IsZero(), "until then it is looked at again")
	})
	t.Run("one that a later placement selects gets its configuration", func(t *testing.T) {
		for _, gone := range []*fleet.Decisions{torn(), missing()} {
			assert.True(t, plan(nil, gone, selects("a")).admissions["a"].granted)
		}
	})
	t.Run("the status says so", func(t *testing.T) {
		assert.Equal(t, "placement ns/p is writing its PlacementDecisions", selectionRemark(torn("a"), addonv1beta1.PlacementRef{}))
	})
}
