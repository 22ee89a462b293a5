package configure

import (
	"math/rand/v2"
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
	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/spokelet/spokelet/hub/addon"
	"github.com/spokelet/spokelet/hub/fleet"
	"github.com/spokelet/spokelet/hub/rollout"
	"github.com/spokelet/spokelet/internal/addonconfig"
	"github.com/spokelet/spokelet/internal/addonconfig/fixture"
	"github.com/spokelet/spokelet/internal/names"
)

// Shows: hub/rollout-turns
func TestWhoTakesTurnsIsRememberedSinceItWasCompleteAtFirst(t *testing.T) {
	references := []addonv1beta1.ConfigReference{fixture.Desires(fixture.Template("t"), "new")}
	f := soaking(references)
	pass := func(after time.Duration, well bool) *metav1.Condition {
		work := fixture.Work("w", 3, references)
		if !well {
			work.Status.Conditions[1].Status = metav1.ConditionFalse
		}
		addOn := f.addOn.DeepCopy()
		record(f, decide(f), addOn, addon.Progress{Works: []*workv1.ManifestWork{work}, Now: fixture.Noon().Add(after)})
		f.addOn = addOn
		return meta.FindStatusCondition(addOn.Status.Conditions, names.ConditionSoaked)
	}
	assert.Nil(t, pass(0, false))
	assert.Nil(t, pass(time.Second, true))
	for turn := 1; turn < 100; turn++ {
		c := pass(time.Duration(turn)*4*time.Second, turn%2 == 0)
		assert.Equal(t, metav1.ConditionFalse, c.Status)
		assert.Equal(t, fixture.Noon().Add(time.Second), c.LastTransitionTime.Time)
	}
	assert.Equal(t, metav1.ConditionFalse, pass(time.Hour, true).Status)
	assert.Equal(t, metav1.ConditionTrue, pass(2*time.Hour, false).Status, "it had soaked")
	assert.Equal(t, metav1.ConditionTrue, pass(3*time.Hour, true).Status)
	assert.Equal(t, metav1.ConditionTrue, pass(3*time.Hour+time.Minute, false).Status)
	assert.NotNil(t, f.addOn.Status.ConfigReferences[0].LastAppliedConfig, "and what is applied stays applied")

	f.states = addonconfig.States{fixture.Template("t"): {Hash: "next"}}
	assert.Nil(t, pass(4*time.Hour, false), "another content begins again")
}

// Cluster c1 is admitted and does not become well. A user who may write its add-on changes the configurations that the
// add-on itself names, every nine minutes. The rollout gives each cluster ten.
// Shows: hub/rollout-own-turns
func TestOwnConfigurationsInTurnsDateNoProgressOfTheRollout(t *testing.T) {
	type configs = []addonv1beta1.AddOnConfig
	tmpl, rolled, x, y := fixture.Template("t"), fixture.DeploymentConfig("rolled"), fixture.DeploymentConfig("x"), fixture.DeploymentConfig("y")
	for sentence, tc := range map[string]struct{ rolled, first, second configs }{
		"one after the other":                      {configs{tmpl}, configs{x}, configs{y}},
		"one that is there and not so":             {configs{tmpl}, configs{x}, nil},
		"one after none":                           {configs{tmpl}, nil, configs{x}},
		"one in place of one of the rollout":       {configs{tmpl, rolled}, nil, configs{x}},
		"one in place of one of it from the start": {configs{tmpl, rolled}, configs{x}, nil},
		"all in place of those of it":              {configs{tmpl, rolled}, configs{fixture.Template("own"), x}, configs{y}},
	} {
		t.Run(sentence, func(t *testing.T) {
			f := own(tc.rolled...)
			pass := func(after time.Duration, own configs) time.Time {
				f.addOn = f.addOn.DeepCopy()
				f.addOn.Spec.Configs = own
				return f.pass(t, after, false)
			}
			first := pass(0, tc.first)
			for turn := range 20 {
				after := time.Duration(turn) * 9 * time.Minute
				assert.Equal(t, first, pass(after, []configs{tc.first, tc.second}[turn%2]), after)
			}
			f.states[tmpl] = addonconfig.State{Hash: "next"}
			assert.Equal(t, fixture.Noon().Add(4*time.Hour), pass(4*time.Hour, nil), "the next content of the rollout begins again")
			noted := meta.FindStatusCondition(f.addOn.Status.Conditions, names.ConditionSoaked)
			assert.Nil(t, noted, "and nothing is recorded of an add-on without configurations of its own")
		})
	}
}

// passing are facts that the passes of the hub manager follow one after the other.
type passing struct{ facts }

// own are the facts about an add-on with no configuration yet. The rollout gives it these.
func own(rolled ...addonv1beta1.AddOnConfig) *passing {
	f := soaking(nil)
	f.cma.Spec.InstallStrategy.Placements[0].Configs = rolled
	for _, name := range []string{"rolled", "x", "y"} {
		f.states[fixture.DeploymentConfig(name)] = addonconfig.State{Hash: name}
	}
	f.states[fixture.Template("own")] = addonconfig.State{Hash: "own"}
	return &passing{f}
}

// pass does a pass, and returns since when the add-on has its Progressing. well reports whether its works are ready.
func (f *passing) pass(t *testing.T, after time.Duration, well bool) time.Time {
	t.Helper()
	decided, addOn := decide(f.facts), f.addOn.DeepCopy()
	assert.Empty(t, decided.held)
	work := fixture.Work("w", 3, decided.references)
	if !well {
		work.Status.Conditions[1].Status = metav1.ConditionFalse
	}
	record(f.facts, decided, addOn, addon.Progress{Works: []*workv1.ManifestWork{work}, Now: fixture.Noon().Add(after)})
	f.addOn = addOn
	return meta.FindStatusCondition(addOn.Status.Conditions, "Progressing").LastTransitionTime.Time
}

// A user who changes the configuration that the add-on itself names, once, sees how it goes on.
// Shows: hub/rollout-own-turns
func TestAnOwnConfigurationOfACompleteClusterShowsItsProgress(t *testing.T) {
	tmpl := fixture.Template("t")
	for sentence, tc := range map[string]struct {
		changed time.Duration
		noted   metav1.ConditionStatus
	}{
		"after it had soaked": {time.Hour, metav1.ConditionTrue},
		"while it soaks":      {5 * time.Minute, metav1.ConditionFalse},
	} {
		t.Run(sentence, func(t *testing.T) {
			f := own(tmpl)
			at := func(d time.Duration) time.Time { return fixture.Noon().Add(d) }
			progressing := func() string {
				return meta.FindStatusCondition(f.addOn.Status.Conditions, "Progressing").Reason
			}
			f.pass(t, 0, true)
			assert.Equal(t, at(0), f.pass(t, time.Minute, true))
			f.addOn = f.addOn.DeepCopy()
			f.addOn.Spec.Configs = []addonv1beta1.AddOnConfig{fixture.DeploymentConfig("x")}
			assert.Equal(t, at(tc.changed), f.pass(t, tc.changed, false))
			assert.Equal(t, "Progressing", progressing())
			noted := meta.FindStatusCondition(f.addOn.Status.Conditions, names.ConditionSoaked)
			assert.Equal(t, tc.noted, noted.Status)
			assert.Equal(t, at(tc.changed), f.pass(t, tc.changed+time.Minute, false))
			assert.Equal(t, at(tc.changed+2*time.Minute), f.pass(t, tc.changed+2*time.Minute, true))
			assert.Equal(t, "Completed", progressing())
		})
	}
}

// A condition about another content is left by a hub manager that does not know it.
// Shows: hub/rollout-soaked-other
func TestThatAnotherContentHadSoakedIsForgotten(t *testing.T) {
	tmpl := fixture.Template("t")
	other := fixture.IsTrue(names.ConditionSoaked)
	other.Message = "the rollout gave " + addonconfig.ContentsOf([]addonv1beta1.ConfigReference{fixture.Desires(tmpl, "old")}).String()
	f := own(tmpl)
	f.addOn.Status.ConfigReferences = []addonv1beta1.ConfigReference{fixture.Has(tmpl, "new")}
	fixture.With(f.addOn, other, fixture.Condition("Progressing", metav1.ConditionFalse, "Completed", fixture.Noon()))
	f.pass(t, time.Minute, false)
	noted := meta.FindStatusCondition(f.addOn.Status.Conditions, names.ConditionSoaked)
	assert.Equal(t, metav1.ConditionFalse, noted.Status, "it breaks while the present content soaks")
	assert.Equal(t, reasonBroke, noted.Reason)
	assert.Equal(t, addonv1beta1.ProgressingReasonFailed,
		meta.FindStatusCondition(f.addOn.Status.Conditions, "Progressing").Reason)
}

const raceDeadline, raceSoak = 10 * time.Minute, 5 * time.Minute

// race is a rollout to clusters a and b, of which one moves at a time. Each has ten minutes to become well and has to
// stay so for five. A user may write the add-on of a.
type race struct {
	r      *rollout.Reconciler
	cma    *addonv1beta1.ClusterManagementAddOn
	states addonconfig.States
	a, b   *addonv1beta1.ManagedClusterAddOn
}

func newRace(rolled ...addonv1beta1.AddOnConfig) *race {
	r := &race{r: &rollout.Reconciler{}, states: own().states, a: own().addOn, b: own().addOn.DeepCopy()}
	r.a.Namespace, r.b.Namespace = "a", "b"
	r.cma = fixture.NewCMA(nil, fixture.ByStrategy(clusterv1alpha1.RolloutStrategy{
		Type: clusterv1alpha1.Progressive, Progressive: &clusterv1alpha1.RolloutProgressive{
			MaxConcurrency: intstr.FromInt32(1), RolloutConfig: clusterv1alpha1.RolloutConfig{
				ProgressDeadline: "10m", MaxFailures: intstr.FromString("100%"), MinSuccessTime: metav1.Duration{Duration: raceSoak},
			},
		},
	}, fixture.Placement("p", rolled...)))
	return r
}

func (r *race) plan(now time.Time) { r.planOf(now, []string{"a", "b"}, r.a, r.b) }

// decidedLongAgo returns what Placement p decided an hour ago.
func decidedLongAgo(selected ...string) *fleet.Decisions {
	all := placement("p", selected...)
	return fleet.NewDecisions(fleet.Seen{
		Key: types.NamespacedName{Namespace: "ns", Name: "p"}, Placement: all.placement,
		Pages: []*clusterv1beta1.PlacementDecision{all.page},
	}, fixture.Noon().Add(-time.Hour))
}

func (r *race) configure(now time.Time, well bool) {
	c := &Configurer{Admission: r.r.Admission}
	progress := func(references []addonv1beta1.ConfigReference) addon.Progress {
		work := fixture.Work("w", 3, references)
		if !well {
			work.Status.Conditions[1].Status = metav1.ConditionFalse
		}
		return addon.Progress{Now: now, Works: []*workv1.ManifestWork{work}}
	}
	r.a = c.Rehearse(r.cma, r.a, r.states, progress)
	r.b = c.Rehearse(r.cma, r.b, r.states, progress)
}

// given reports whether cluster b has a version of template t.
func (r *race) given(version string) bool {
	return slices.ContainsFunc(r.b.Status.ConfigReferences, func(reference addonv1beta1.ConfigReference) bool {
		return reference.DesiredConfig.SpecHash == version
	})
}

// A user who may write the add-on of cluster a changes the configurations that the add-on itself names.
// Shows: hub/rollout-own-turns
func TestOwnConfigurationsInTurnsHoldNoOtherCluster(t *testing.T) {
	type configs = []addonv1beta1.AddOnConfig
	tmpl, rolled, x, y := fixture.Template("t"), fixture.DeploymentConfig("rolled"), fixture.DeploymentConfig("x"), fixture.DeploymentConfig("y")
	// A cluster may be complete at the end of its deadline, and break at the end of its soak.
	const longest = 2*raceDeadline + raceSoak
	never := []bool{false}
	for sentence, tc := range map[string]struct {
		rolled configs
		own    []configs
		well   []bool
		within time.Duration
	}{
		"nothing changes, and it is not well":         {configs{tmpl, rolled}, []configs{nil}, never, raceDeadline},
		"nothing changes, and it is well":             {configs{tmpl, rolled}, []configs{nil}, []bool{true}, raceSoak},
		"one after the other":                         {configs{tmpl}, []configs{{x}, {y}}, never, raceDeadline},
		"one that is there and not so":                {configs{tmpl}, []configs{{x}, nil}, never, raceDeadline},
		"one in place of one of the rollout":          {configs{tmpl, rolled}, []configs{nil, {x}}, never, raceDeadline},
		"one from the start":                          {configs{tmpl, rolled}, []configs{{x}, nil}, never, raceDeadline},
		"one after the other, and it is well between": {configs{tmpl}, []configs{{x}, {x}, {y}, {y}}, []bool{false, true}, longest},
		"one of the rollout comes back, and is well for a while": {
			configs{tmpl, rolled}, []configs{nil, nil, {x}}, []bool{false, true, false}, longest,
		},
		"one of the rollout comes back, and is not well": {
			configs{tmpl, rolled}, []configs{{x}, {x}, nil}, []bool{false, true, false}, longest,
		},
	} {
		for _, every := range []time.Duration{time.Minute, 3 * time.Minute, 9 * time.Minute} {
			t.Run(sentence+" every "+every.String(), func(t *testing.T) {
				r := newRace(tc.rolled...)
				for after := time.Duration(0); !r.given("new"); after += 10 * time.Second {
					require.LessOrEqual(t, after, tc.within+time.Minute, "b still waits for a")
					now, turn := fixture.Noon().Add(after), int(after/every)
					r.a.Spec.Configs = tc.own[turn%len(tc.own)]
					r.plan(now)
					r.configure(now, tc.well[turn%len(tc.well)])
				}
			})
		}
	}
}

// A user changes the configurations at any instant, also between a plan and the pass that follows it, and the hub manager
// starts again now and then. Version "new" is rolled out, and then version "next".
// Shows: hub/rollout-own-turns
func TestOwnConfigurationsAtAnyTimeHoldNoOtherCluster(t *testing.T) {
	const longest = 2*raceDeadline + raceSoak
	x, y, rolled := fixture.DeploymentConfig("x"), fixture.DeploymentConfig("y"), fixture.DeploymentConfig("rolled")
	template := fixture.Template("own")
	choices := [][]addonv1beta1.AddOnConfig{nil, {x}, {y}, {rolled}, {fixture.ConfigMap("c")}, {x, fixture.ConfigMap("c")}, {template}, {template, x}}
	for seed := range uint64(60) {
		g := rand.New(rand.NewPCG(seed, 1))
		r, well, calm := newRace([]addonv1beta1.AddOnConfig{fixture.Template("t"), rolled}[:1+seed%2]...), false, 1+g.IntN(16)
		r.states[fixture.ConfigMap("c")] = addonconfig.State{Hash: "c"}
		after := time.Duration(0)
		for _, version := range []string{"new", "next"} {
			r.states[fixture.Template("t")] = addonconfig.State{Hash: version}
			for begin := after; !r.given(version); after += 30 * time.Second {
				require.LessOrEqual(t, after-begin, longest+2*time.Minute, "b still waits for a, seed %d, %s", seed, version)
				now := fixture.Noon().Add(after)
				well = well != (g.IntN(calm) == 0)
				if g.IntN(calm) == 0 {
					r.a.Spec.Configs = choices[g.IntN(len(choices))]
				}
				if g.IntN(8) == 0 {
					r.r = &rollout.Reconciler{}
				}
				r.plan(now)
				if g.IntN(4) == 0 {
					r.a.Spec.Configs = choices[g.IntN(len(choices))]
				}
				r.configure(now, well)
				r.configure(now, well)
				once := r.a.Status
				r.configure(now, well)
				assert.Equal(t, once, r.a.Status, "nothing changes by itself, seed %d", seed)
			}
		}
	}
}
