package rollout

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1alpha1 "open-cluster-management.io/api/cluster/v1alpha1"

	"github.com/spokelet/spokelet/hub/fleet"
	"github.com/spokelet/spokelet/internal/addonconfig"
	"github.com/spokelet/spokelet/internal/addonconfig/fixture"
)

// turns are the passes over a rollout to cluster a, and after it to cluster b; each minute has one.
type turns struct {
	Reconciler
	now time.Time
	// soak is minSuccessTime, failures is maxFailures of a and of b.
	soak     time.Duration
	failures intstr.IntOrString
	late     []string
}

// minute plans with what a has, nil for no add-on, and returns the clusters that are admitted.
func (r *turns) minute(a *addonv1beta1.ManagedClusterAddOn, selected ...string) []string {
	r.now = r.now.Add(time.Minute)
	addOns := []*addonv1beta1.ManagedClusterAddOn{fixture.AddOn("b")}
	if a != nil {
		addOns = append(addOns, a)
	}
	placement := selects(selected...)
	placement.Groups["b"] = fleet.Group{Index: 1}
	before, _ := r.decided.Get("hello")
	p := decide(facts{
		now: r.now, states: addonconfig.States{fixture.Template("t"): {Hash: "t"}, fixture.DeploymentConfig("own"): {Hash: "o"}},
		cma: fixture.NewCMA(nil, fixture.ByStrategy(clusterv1alpha1.RolloutStrategy{
			Type: clusterv1alpha1.ProgressivePerGroup, ProgressivePerGroup: &clusterv1alpha1.RolloutProgressivePerGroup{
				RolloutConfig: clusterv1alpha1.RolloutConfig{
					ProgressDeadline: "20m", MaxFailures: r.failures, MinSuccessTime: metav1.Duration{Duration: r.soak},
				},
			},
		}, fixture.Placement("p", fixture.Template("t")))),
		placements: []*fleet.Decisions{placement}, members: membersOf(addOns...), served: map[string]bool{"a": true},
		admitted: before.admissions, ways: before.ways,
	})
	r.remember("hello", p)
	r.late = p.placements[0].TimedOut
	return p.placements[0].New
}

// addOn returns the add-on of a with a UID, as it is a while after it was created.
func (r *turns) addOn(uid string, references ...addonv1beta1.ConfigReference) *addonv1beta1.ManagedClusterAddOn {
	a := fixture.AddOn("a", references...)
	a.UID = types.UID(uid)
	return a
}

func (r *turns) inFlight(uid string, since time.Time) *addonv1beta1.ManagedClusterAddOn {
	return fixture.With(r.addOn(uid, fixture.Desires(fixture.Template("t"), "t")),
		fixture.Condition("Progressing", metav1.ConditionTrue, "Progressing", since))
}

func (r *turns) complete(uid string, since time.Time) *addonv1beta1.ManagedClusterAddOn {
	return fixture.With(r.addOn(uid, fixture.Has(fixture.Template("t"), "t")),
		fixture.Condition("Progressing", metav1.ConditionFalse, "Completed", since))
}

// A user deletes the add-on of cluster a in turns, and the hub installs it again. One failure is tolerated.
// Shows: hub/rollout-again
func TestAnAddOnThatIsCreatedAgainAndAgainHasOneDeadline(t *testing.T) {
	both := []string{"a", "b"}
	for sentence, turn := range map[string]func(r *turns, uid string) []string{
		"while it is on its way": func(r *turns, uid string) []string {
			return append(r.minute(r.addOn(uid), both...), append(r.minute(r.inFlight(uid, r.now), both...), r.minute(nil, both...)...)...)
		},
		"and is seen again before it is missed": func(r *turns, uid string) []string {
			return append(r.minute(r.addOn(uid), both...), r.minute(r.inFlight(uid, r.now), both...)...)
		},
		"and it goes slowly": func(r *turns, uid string) []string {
			going := r.inFlight(uid, r.now)
			going.DeletionTimestamp = new(metav1.NewTime(r.now))
			return append(r.minute(r.inFlight(uid, r.now), both...), r.minute(going, both...)...)
		},
		"before it is admitted": func(r *turns, uid string) []string {
			return append(r.minute(r.addOn(uid), both...), r.minute(nil, both...)...)
		},
		"while it soaks": func(r *turns, uid string) []string {
			r.soak = 10 * time.Minute
			return append(r.minute(r.inFlight(uid, r.now), both...), append(r.minute(r.complete(uid, r.now), both...), r.minute(nil, both...)...)...)
		},
		"and has configurations of its own in turns": func(r *turns, uid string) []string {
			own := r.inFlight(uid, r.now)
			own.Spec.Configs = []addonv1beta1.AddOnConfig{fixture.DeploymentConfig("own")}
			own.Status.ConfigReferences = append(own.Status.ConfigReferences, fixture.Desires(fixture.DeploymentConfig("own"), "o"))
			return append(r.minute(own, both...), append(r.minute(nil, both...), r.minute(r.inFlight(uid+"'", r.now), both...)...)...)
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			r := &turns{now: fixture.Noon(), failures: intstr.FromInt32(1)}
			r.minute(r.addOn("first"), both...)
			admitted := 0
			for n := 0; admitted == 0 && n < 60; n++ {
				for _, cluster := range turn(r, string(rune('A'+n))) {
					if cluster == "b" {
						admitted = n
					}
				}
			}
			assert.Positive(t, admitted, "later groups wait for ever")
			assert.Less(t, r.now.Sub(fixture.Noon()), 26*time.Minute+r.soak, "the deadline is 20 minutes")
			assert.Greater(t, r.now.Sub(fixture.Noon()), 20*time.Minute)
		})
	}
}

// Shows: hub/rollout-again
func TestAnAddOnThatIsDeletedOnItsWayIsAFailureAfterTheDeadline(t *testing.T) {
	both := []string{"a", "b"}
	r := &turns{now: fixture.Noon()}
	r.minute(r.addOn("first"), both...)
	r.minute(r.inFlight("first", r.now), both...)
	r.minute(nil, both...)
	r.now = r.now.Add(19 * time.Minute)
	assert.Empty(t, r.minute(nil, both...), "a has had no success, and none is tolerated to fail")
	assert.Equal(t, []string{"a"}, r.late)
	r.minute(r.complete("second", r.now), both...)
	assert.Empty(t, r.late)
}

// Shows: hub/rollout-again
func TestAnAddOnThatArrivedOrWaitedHasItsWholeDeadlineAgain(t *testing.T) {
	both := []string{"a", "b"}
	t.Run("it arrived, and is deleted a day later", func(t *testing.T) {
		r := &turns{now: fixture.Noon()}
		r.minute(r.addOn("first"), both...)
		r.minute(r.inFlight("first", r.now), both...)
		r.minute(r.complete("first", r.now), both...)
		r.now = r.now.Add(24 * time.Hour)
		r.minute(nil, both...)
		r.minute(r.addOn("second"), both...)
		r.minute(r.inFlight("second", r.now), both...)
		assert.NotContains(t, r.late, "a")
		r.now = r.now.Add(20 * time.Minute)
		r.minute(r.inFlight("second", r.now.Add(-20*time.Minute)), both...)
		assert.Contains(t, r.late, "a")
	})
	t.Run("another configuration is rolled out", func(t *testing.T) {
		f := way{target: "before", addOn: "first", again: true, since: fixture.Noon()}
		assert.Equal(t, way{target: "after", addOn: "second"}, f.goesOn("after", "second", fixture.Noon()))
	})
	t.Run("it is created again while nothing is rolled out", func(t *testing.T) {
		r := &turns{now: fixture.Noon()}
		r.minute(nil, both...)
		r.minute(r.inFlight("first", r.now), both...)
		r.failures = intstr.FromString("some")
		r.minute(r.addOn("second"), both...)
		r.failures = intstr.FromInt32(0)
		r.now = r.now.Add(time.Hour)
		assert.Equal(t, []string{"a"}, r.minute(r.addOn("second"), both...))
		r.minute(r.inFlight("second", r.now), both...)
		assert.Empty(t, r.late)
	})
}

// As TestAnAddOnThatIsDeletedOnItsWayIsAFailureAfterTheDeadline, and nothing happens for some minutes more.
//
// Shows: hub/rollout-again
func TestWhoTimedOutWithoutAnAddOnStaysTimedOut(t *testing.T) {
	both := []string{"a", "b"}
	r := &turns{now: fixture.Noon()}
	r.minute(r.addOn("first"), both...)
	r.minute(r.inFlight("first", r.now), both...)
	r.minute(nil, both...)
	r.now = r.now.Add(19 * time.Minute)
	for n := range 3 {
		r.minute(nil, both...)
		assert.Equal(t, []string{"a"}, r.late, "minute %d", n)
	}
}
