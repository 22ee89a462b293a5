package rollout

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1alpha1 "open-cluster-management.io/api/cluster/v1alpha1"

	"github.com/spokelet/spokelet/hub/fleet"
	"github.com/spokelet/spokelet/internal/addonconfig"
	"github.com/spokelet/spokelet/internal/addonconfig/fixture"
)

// soaked is the condition that hub/configure writes when these references break.
func soaked(
	status metav1.ConditionStatus, since time.Time, references ...addonv1beta1.ConfigReference,
) metav1.Condition {
	return saying("addon.spokelet.io/Soaked", status, "Because", "the rollout gave "+addonconfig.ContentsOf(references).String(), since)
}

// oneByOne are the facts about a rollout of a configuration to clusters a and b, of which one moves at a time.
func oneByOne(
	config addonv1beta1.AddOnConfig, hash string, settings clusterv1alpha1.RolloutConfig,
	addOns ...*addonv1beta1.ManagedClusterAddOn,
) facts {
	return facts{
		now: fixture.Noon(), states: addonconfig.States{config: {Hash: hash}},
		cma: fixture.NewCMA(nil, fixture.ByStrategy(clusterv1alpha1.RolloutStrategy{
			Type: clusterv1alpha1.Progressive, Progressive: &clusterv1alpha1.RolloutProgressive{
				MaxConcurrency: intstr.FromInt32(1), RolloutConfig: settings,
			},
		}, fixture.Placement("p", config))),
		placements: []*fleet.Decisions{selects("a", "b")}, members: membersOf(addOns...),
	}
}

// Shows: hub/rollout-turns
func TestWhoBreaksWhileItSoaksIsDueSinceItWasCompleteAtFirst(t *testing.T) {
	cfg := fixture.Template("t")
	for sentence, tc := range map[string]struct {
		noted []metav1.Condition
		soak  time.Duration
		due   time.Time
	}{
		"it broke an hour ago, and should soak for an hour": {
			[]metav1.Condition{soaked(metav1.ConditionFalse, fixture.Noon(), fixture.Desires(cfg, "new"))}, time.Hour,
			fixture.Noon().Add(time.Hour),
		},
		"and where nothing soaks, until its pods are told": {
			[]metav1.Condition{soaked(metav1.ConditionFalse, fixture.Noon(), fixture.Desires(cfg, "new"))}, 0,
			fixture.Noon().Add(settled),
		},
		"it broke with another content": {
			[]metav1.Condition{soaked(metav1.ConditionFalse, fixture.Noon(), fixture.Desires(cfg, "old"))}, time.Hour, time.Time{},
		},
		"a condition without contents says nothing": {
			[]metav1.Condition{fixture.Condition("addon.spokelet.io/Soaked", metav1.ConditionFalse, "Because", fixture.Noon())},
			time.Hour, time.Time{},
		},
		"it never broke, and has a configuration of its own": {
			[]metav1.Condition{soaked(metav1.ConditionUnknown, fixture.Noon(), fixture.Desires(cfg, "new"))}, time.Hour, time.Time{},
		},
		"it never broke": {nil, time.Hour, time.Time{}},
	} {
		t.Run(sentence, func(t *testing.T) {
			addOn := fixture.With(fixture.AddOn("a", fixture.Desires(cfg, "new")), tc.noted...)
			f := oneByOne(cfg, "new", clusterv1alpha1.RolloutConfig{ProgressDeadline: "20m"}, addOn)
			m := f.members["a"]
			s := &survey{f: f, soak: tc.soak, of: &targets{}}
			_, _, due := s.state(m, f.target(m.addOn(), 0), f.ways[m.cluster])
			assert.Equal(t, tc.due, due)
		})
	}
}

// Two clusters broke an hour ago while version "bad" soaked. The fix is rolled out, one cluster at a time, and goes to
// the broken ones first. The first of them is admitted; its status does not show that yet when something starts the next
// plan.
// Shows: hub/rollout-turns
func TestAClusterThatIsJustAdmittedIsNotDueByWhatItHadBefore(t *testing.T) {
	cfg, hourAgo := fixture.Template("t"), fixture.Noon().Add(-time.Hour)
	for sentence, tc := range map[string]struct {
		noted       []metav1.Condition
		maxFailures intstr.IntOrString
	}{
		"failures are tolerated, and they broke later": {nil, intstr.FromString("100%")},
		"failures are tolerated": {
			[]metav1.Condition{soaked(metav1.ConditionFalse, hourAgo, fixture.Desires(cfg, "bad"))}, intstr.FromString("100%"),
		},
		"no failure is tolerated, and they broke later": {nil, intstr.FromInt32(0)},
		"no failure is tolerated": {
			[]metav1.Condition{soaked(metav1.ConditionFalse, hourAgo, fixture.Desires(cfg, "bad"))}, intstr.FromInt32(0),
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			of := func(name string) *addonv1beta1.ManagedClusterAddOn {
				return fixture.With(fixture.With(fixture.AddOn(name, fixture.Desires(cfg, "bad")),
					fixture.Condition("Progressing", metav1.ConditionFalse, "Failed", hourAgo)), tc.noted...)
			}
			f := oneByOne(cfg, "fix", clusterv1alpha1.RolloutConfig{
				MinSuccessTime: metav1.Duration{Duration: 10 * time.Minute}, ProgressDeadline: "20m", MaxFailures: tc.maxFailures,
			}, of("a"), of("b"))
			first := decide(f)
			require.Equal(t, []string{"a"}, first.placements[0].New)
			f.admitted, f.now = first.admissions, f.now.Add(time.Second)
			second := decide(f).placements[0]
			assert.Empty(t, second.TimedOut, "a moves for a second, and has 20 minutes")
			assert.Empty(t, second.New, "one cluster at a time")
			assert.Empty(t, second.Stopped)
		})
	}
}

// An earlier version of the hub manager, or the one of OCM, was leader for a while: it gave the cluster version "new",
// and knows nothing of addon.spokelet.io/Soaked, which is about the version before. Works are not ready.
// Shows: hub/rollout-soaked-other
func TestThatAnotherContentHadSoakedIsNoSuccessOfThePresentOne(t *testing.T) {
	cfg := fixture.Template("t")
	for sentence, tc := range map[string]struct {
		noted metav1.Condition
		next  []string
	}{
		"the version before had soaked":   {soaked(metav1.ConditionTrue, fixture.Noon(), fixture.Desires(cfg, "old")), nil},
		"it is not known what had soaked": {fixture.IsTrue("addon.spokelet.io/Soaked"), nil},
		"this version had soaked before it broke": {
			soaked(metav1.ConditionTrue, fixture.Noon(), fixture.Desires(cfg, "new")), []string{"b"},
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			reference := fixture.Desires(cfg, "new")
			reference.LastAppliedConfig = fixture.Hashed(cfg, "old")
			a := fixture.With(fixture.AddOn("a", reference),
				fixture.Condition("Progressing", metav1.ConditionTrue, "Progressing", fixture.Noon()), tc.noted)
			f := oneByOne(cfg, "new", clusterv1alpha1.RolloutConfig{}, a, fixture.AddOn("b", fixture.Has(cfg, "old")))
			assert.Equal(t, tc.next, decide(f).placements[0].New)
		})
	}
}
