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

// Cluster a has the configuration since an hour and soaks for a day; the deadline is 20 minutes. A user deletes its
// add-on, and the hub installs it again in the next minute. Group 1 must not go on by that.
//
// Shows: hub/rollout-again
func TestACanaryThatIsDeletedWhileItSoaksLongerThanTheDeadlineIsAwaited(t *testing.T) {
	both := []string{"a", "b"}
	r := &turns{now: fixture.Noon(), soak: 24 * time.Hour}
	r.minute(r.addOn("first"), both...)
	r.minute(r.inFlight("first", r.now), both...)
	complete := r.now
	for range 60 {
		assert.NotContains(t, r.minute(r.complete("first", complete), both...), "b")
	}
	admitted := r.minute(nil, both...)
	assert.NotContains(t, admitted, "b", "the canary lacks its add-on for one minute, and soaked for one hour of 24")
}

// The same, and it was not noticed that it was missing.
//
// Shows: hub/rollout-again
func TestACanaryThatIsCreatedAgainWhileItSoaksIsNotTimedOutAtOnce(t *testing.T) {
	both := []string{"a", "b"}
	r := &turns{now: fixture.Noon(), soak: 24 * time.Hour}
	r.minute(r.addOn("first"), both...)
	r.minute(r.inFlight("first", r.now), both...)
	complete := r.now
	for range 60 {
		r.minute(r.complete("first", complete), both...)
	}
	r.minute(r.addOn("second"), both...)
	admitted := r.minute(r.inFlight("second", r.now), both...)
	assert.NotContains(t, r.late, "a", "it was on its way for two minutes in all, of 20")
	assert.NotContains(t, admitted, "b")
}

// Cluster a is on its way for 19 minutes; its add-on is deleted, which one pass sees, and created again.
//
// Shows: hub/rollout-again
func TestADeletionThatIsSeenBeginsNoNewDeadline(t *testing.T) {
	both := []string{"a", "b"}
	for sentence, seen := range map[string]bool{"control: the deletion is not seen": false, "the deletion is seen": true} {
		t.Run(sentence, func(t *testing.T) {
			r := &turns{now: fixture.Noon(), failures: intstr.FromInt32(1)}
			r.minute(r.addOn("first"), both...)
			since := r.now
			for range 18 {
				r.minute(r.inFlight("first", since), both...)
			}
			if seen {
				going := r.inFlight("first", since)
				going.DeletionTimestamp = new(metav1.NewTime(r.now))
				r.minute(going, both...)
			}
			r.minute(r.addOn("second"), both...)
			again := r.now
			for r.now.Before(fixture.Noon().Add(25 * time.Minute)) {
				r.minute(r.inFlight("second", again), both...)
			}
			assert.Contains(t, r.late, "a", "on its way since 24 minutes, of 20")
		})
	}
}

// play plans with any world; each call is a minute later.
type play struct {
	Reconciler
	now        time.Time
	soak       time.Duration
	mandatory  bool
	incomplete error
	served     map[string]bool
	selected   []string
	late       []string
}

func (r *play) minute(addOns ...*addonv1beta1.ManagedClusterAddOn) []string {
	r.now = r.now.Add(time.Minute)
	placement := selects(r.selected...)
	placement.Groups["b"] = fleet.Group{Index: 1}
	placement.Incomplete = r.incomplete
	strategy := &clusterv1alpha1.RolloutProgressivePerGroup{RolloutConfig: clusterv1alpha1.RolloutConfig{
		ProgressDeadline: "20m", MinSuccessTime: metav1.Duration{Duration: r.soak},
	}}
	if r.mandatory {
		strategy.MandatoryDecisionGroups.MandatoryDecisionGroups = []clusterv1alpha1.MandatoryDecisionGroup{{GroupIndex: 0}}
	}
	before, _ := r.decided.Get("hello")
	p := decide(facts{
		now: r.now, states: addonconfig.States{fixture.Template("t"): {Hash: "t"}},
		cma: fixture.NewCMA(nil, fixture.ByStrategy(clusterv1alpha1.RolloutStrategy{
			Type: clusterv1alpha1.ProgressivePerGroup, ProgressivePerGroup: strategy,
		}, fixture.Placement("p", fixture.Template("t")))),
		placements: []*fleet.Decisions{placement}, members: membersOf(addOns...), served: r.served,
		admitted: before.admissions, ways: before.ways,
	})
	r.remember("hello", p)
	r.late = p.placements[0].TimedOut
	return p.placements[0].New
}

// The add-on of cluster a is created again five minutes after it set out, while the decisions of the placement lack a
// page, which they do for an hour: nobody is admitted meanwhile.
//
// Shows: hub/rollout-again
func TestTheTimeInWhichAPlacementAdmitsNobodyDoesNotCount(t *testing.T) {
	var u turns
	for sentence, again := range map[string]string{"control: it is the first one": "first", "it is created again": "second"} {
		t.Run(sentence, func(t *testing.T) {
			r := &play{now: fixture.Noon(), selected: []string{"a", "b"}, served: map[string]bool{"a": true, "b": true}}
			b := fixture.AddOn("b")
			if again == "second" {
				r.minute(u.addOn("first"), b)
				since := r.now
				for range 5 {
					r.minute(u.inFlight("first", since), b)
				}
			}
			r.incomplete = assert.AnError
			for range 60 {
				r.minute(u.addOn(again), b)
			}
			r.incomplete = nil
			assert.Equal(t, []string{"a"}, r.minute(u.addOn(again), b))
			r.minute(u.inFlight(again, r.now), b)
			assert.NotContains(t, r.late, "a", "it was admitted a minute ago; it was on its way for six minutes in all, of 20")
		})
	}
}

// The hub cannot install anything for half an hour, on the first day. Then it installs one cluster after the other.
//
// Shows: hub/rollout-awaited
func TestAnOutageOfTheHubDoesNotPutTheCanaryBehindTheFleet(t *testing.T) {
	for sentence, tc := range map[string]struct {
		outage    int
		mandatory bool
	}{"control: five minutes": {5, false}, "half an hour, mandatory": {30, true}, "half an hour": {30, false}} {
		t.Run(sentence, func(t *testing.T) {
			r := &play{now: fixture.Noon(), selected: []string{"a", "b"}, served: map[string]bool{"a": true, "b": true}, mandatory: tc.mandatory}
			for range tc.outage {
				r.minute()
			}
			assert.Empty(t, r.minute(fixture.AddOn("b")), "nothing has been proved in group 0")
		})
	}
}

// Cluster a is complete after two minutes, has to soak for ten, and breaks and is well in turns: with 20 minutes of
// deadline it times out after 32. After 29 minutes its add-on is created again, and does not get well.
//
// Shows: hub/rollout-again
func TestTurnsAndACreationHaveOneDeadline(t *testing.T) {
	both := []string{"a", "b"}
	for sentence, again := range map[string]bool{"control: it is not created again": false, "it is created again": true} {
		t.Run(sentence, func(t *testing.T) {
			r := &turns{now: fixture.Noon(), soak: 10 * time.Minute, failures: intstr.FromInt32(1)}
			r.minute(r.addOn("first"), both...)
			r.minute(r.inFlight("first", r.now), both...)
			first := r.now
			r.minute(r.complete("first", first), both...)
			broke := fixture.Condition("addon.spokelet.io/Soaked", metav1.ConditionFalse, "BrokeWhileItSoaked", first)
			broke.Message = "the rollout gave " + addonconfig.ContentsOf([]addonv1beta1.ConfigReference{fixture.Desires(fixture.Template("t"), "t")}).String()
			for turn := 0; r.now.Before(fixture.Noon().Add(29 * time.Minute)); turn++ {
				a := r.inFlight("first", r.now)
				if turn%2 == 1 {
					a = r.complete("first", r.now)
				}
				r.minute(fixture.With(a, broke), both...)
				assert.Empty(t, r.late)
			}
			uid, since := types.UID("first"), r.now
			if again {
				r.minute(r.addOn("second"), both...)
				uid = "second"
			}
			for r.now.Before(fixture.Noon().Add(36 * time.Minute)) {
				a := r.inFlight(string(uid), since)
				if !again {
					a = fixture.With(a, broke)
				}
				r.minute(a, both...)
			}
			assert.Contains(t, r.late, "a", "after 36 minutes")
		})
	}
}
