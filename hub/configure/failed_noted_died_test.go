package configure

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"

	"github.com/spokelet/spokelet/hub/rollout"
	"github.com/spokelet/spokelet/internal/addonconfig"
	"github.com/spokelet/spokelet/internal/addonconfig/fixture"
	"github.com/spokelet/spokelet/internal/names"
)

// The agent of a failed, and its works break then. The hub manager dies when it has written that. Two may move at a time.
//
// Shows: hub/rollout-failed-noted
func TestWorksThatBreakExcuseNoFailureOfAnAgentAfterARestart(t *testing.T) {
	tmpl, none := fixture.Template("t"), fixture.DeploymentConfig("none")
	for _, deadline := range []string{"10m", "2h", ""} {
		for _, own := range [][]addonv1beta1.AddOnConfig{nil, {none}} {
			for _, restarts := range []bool{false, true} {
				t.Run(fmt.Sprintf("deadline %q own %d restarts %t", deadline, len(own), restarts), func(t *testing.T) {
					r := newThree(tmpl)
					r.states[none] = addonconfig.State{Missing: true}
					r.loses(t, tmpl)
					require.True(t, isFailed(r.a))
					p := r.cma.Spec.InstallStrategy.Placements[0].RolloutStrategy.Progressive
					p.ProgressDeadline, p.MaxConcurrency = deadline, intstr.FromInt(2)
					for n := range 3 {
						r.pass("")
						require.True(t, r.stays(t, tmpl, n))
					}
					require.True(t, isFailed(r.a))
					r.pass("bad")
					if restarts {
						r.r = &rollout.Reconciler{}
					}
					r.a.Spec.Configs = own
					r.staysFor(t, tmpl, 60, "bad")
				})
			}
		}
	}
}

// As TestWorksThatBreakExcuseNoFailureOfAnAgentAfterARestart, some passes later.
//
// Shows: hub/rollout-failed-noted
func TestWorksThatBrokeExcuseNoFailureOfAnAgentAfterARestart(t *testing.T) {
	tmpl := fixture.Template("t")
	for passes := range 3 {
		t.Run(fmt.Sprintf("restart %d passes after the works broke", passes+1), func(t *testing.T) {
			r := newThree(tmpl)
			p := r.cma.Spec.InstallStrategy.Placements[0].RolloutStrategy.Progressive
			p.ProgressDeadline = "2h"
			r.loses(t, tmpl)
			p.MaxConcurrency = intstr.FromInt(2)
			require.True(t, isFailed(r.a))
			for range passes + 1 {
				r.pass("bad")
			}
			require.True(t, r.stays(t, tmpl, -1))
			r.r = &rollout.Reconciler{}
			r.staysFor(t, tmpl, 30, "bad")
		})
	}
}

// The next leader writes that a failed, by a clock that is minutes behind, and the hub manager starts again.
//
// Shows: hub/rollout-failed-noted
func TestAFailureCountsThoughTheClockOfTheNextLeaderIsBehind(t *testing.T) {
	tmpl, unread := fixture.Template("t"), fixture.ConfigMap("c")
	for _, back := range []time.Duration{0, 3 * time.Minute} {
		for _, restarts := range []bool{false, true} {
			t.Run(fmt.Sprintf("back %s restarts %t", back, restarts), func(t *testing.T) {
				r := newThree(tmpl)
				r.states[unread] = addonconfig.State{Unread: "no"}
				r.stops(t, tmpl, 12, func(n int) {
					if n == 3 {
						r.after -= back
						r.r = &rollout.Reconciler{} // the next leader, whose clock is behind
					}
					if n == 3 {
						r.a = fixture.With(r.a.DeepCopy(), fixture.Condition("Available", metav1.ConditionFalse, "Broken", fixture.Noon().Add(r.after)))
					}
					r.pass("")
				})
				require.True(t, isFailed(r.a))
				if restarts {
					r.r = &rollout.Reconciler{}
				}
				r.a.Spec.Configs = []addonv1beta1.AddOnConfig{unread}
				r.staysFor(t, tmpl, 60, "")
			})
		}
	}
}

// The agent of a failed and is available again. The plan sees that, and the hub manager is killed before the pass of the
// add-on.
//
// Shows: hub/rollout-failed-noted
func TestARecoveryCountsThoughTheHubManagerDiedBeforeItWroteThat(t *testing.T) {
	tmpl, unread := fixture.Template("t"), fixture.ConfigMap("c")
	for _, killed := range []bool{false, true} {
		t.Run(fmt.Sprintf("killed %t", killed), func(t *testing.T) {
			r := newThree(tmpl)
			r.states[unread] = addonconfig.State{Unread: "no"}
			r.loses(t, tmpl)
			require.True(t, isFailed(r.a))
			r.a = r.a.DeepCopy()
			c := meta.FindStatusCondition(r.a.Status.Conditions, "Available")
			c.Status, c.LastTransitionTime = metav1.ConditionTrue, metav1.NewTime(fixture.Noon().Add(r.after))
			r.plans()
			if killed {
				r.r = &rollout.Reconciler{}
			}
			r.a.Spec.Configs = []addonv1beta1.AddOnConfig{unread}
			for range 120 {
				r.pass("")
			}
			assert.Equal(t, "bad", r.hash(r.b, tmpl), "a was complete and well, and awaits what its user names; failed: %t", isFailed(r.a))
		})
	}
}

// A hub manager starts, and the pass of the add-on comes before the first plan.
//
// Shows: hub/rollout-failed-noted
func TestAPassOfAnAddOnBeforeTheFirstPlanExcusesNoFailure(t *testing.T) {
	tmpl, unread := fixture.Template("t"), fixture.ConfigMap("c")
	for _, restarts := range []bool{false, true} {
		t.Run(fmt.Sprintf("restarts %t", restarts), func(t *testing.T) {
			r := newThree(tmpl)
			r.states[unread] = addonconfig.State{Unread: "no"}
			r.loses(t, tmpl)
			r.cma.Spec.InstallStrategy.Placements[0].RolloutStrategy.Progressive.MaxConcurrency = intstr.FromInt(2)
			for range 2 {
				r.pass("")
			}
			require.True(t, isFailed(r.a))
			if restarts {
				r.r = &rollout.Reconciler{}
			}
			r.a = r.a.DeepCopy()
			r.a.Spec.Configs = []addonv1beta1.AddOnConfig{unread}
			r.a = r.configures(r.a) // before the first plan
			r.staysFor(t, tmpl, 60, "")
		})
	}
}

// Cluster a was admitted a minute ago. The hub manager is down for longer than the progressDeadline; meanwhile the user of a
// names a configuration of an unknown hash.
//
// Shows: hub/rollout-failed-noted
func TestAnOutageOfTheHubManagerIsNoFailure(t *testing.T) {
	tmpl, unread := fixture.Template("t"), fixture.ConfigMap("c")
	for _, outage := range []time.Duration{0, 5 * time.Minute, 30 * time.Minute} {
		for _, restarts := range []bool{false, true} {
			t.Run(fmt.Sprintf("outage %s restarts %t", outage, restarts), func(t *testing.T) {
				r := newThree(tmpl)
				r.states[unread] = addonconfig.State{Unread: "no"}
				r.states[tmpl] = addonconfig.State{Hash: "new"}
				for range 120 {
					r.pass("")
				}
				r.states[tmpl] = addonconfig.State{Hash: "bad"}
				r.pass("bad")
				r.pass("bad")
				require.Equal(t, "bad", r.hash(r.a, tmpl))
				require.Equal(t, "new", r.hash(r.b, tmpl))
				require.False(t, isFailed(r.a))
				r.a = r.a.DeepCopy()
				r.a.Spec.Configs = []addonv1beta1.AddOnConfig{unread}
				r.after += outage
				if restarts {
					r.r = &rollout.Reconciler{}
				}
				for range 300 {
					r.pass("")
				}
				assert.Equal(t, "bad", r.hash(r.b, tmpl), "a awaits what its user names, and nothing else is wrong with it: %v",
					meta.FindStatusCondition(r.a.Status.Conditions, names.ConditionRolloutFailed))
			})
		}
	}
}

// Cluster a failed and names a configuration that does not exist. What the rollout gives in its place is edited, and the hub
// manager starts again: another content begins again.
//
// Shows: hub/rollout-failed-noted
func TestAFailureWithAnotherContentBeneathAnOwnOneCountsForNothing(t *testing.T) {
	tmpl, rolled, none := fixture.Template("t"), fixture.DeploymentConfig("rolled"), fixture.DeploymentConfig("none")
	for _, restarts := range []bool{false, true} {
		t.Run(fmt.Sprintf("restarts %t", restarts), func(t *testing.T) {
			r := newThree(tmpl, rolled)
			r.states[none] = addonconfig.State{Missing: true}
			r.breaks(t, tmpl)
			r.a.Spec.Configs = []addonv1beta1.AddOnConfig{none}
			for range 5 {
				r.pass("bad")
			}
			require.True(t, isFailed(r.a))
			r.states[rolled] = addonconfig.State{Hash: "r2"}
			if restarts {
				r.r = &rollout.Reconciler{}
			}
			for range 100 {
				r.pass("bad")
			}
			assert.Equal(t, "r2", r.hash(r.c, rolled), "the rollout gives another content since an hour: %v", meta.FindStatusCondition(r.a.Status.Conditions, names.ConditionRolloutFailed))
		})
	}
}

// Cluster a is on its way for long, without a deadline and one at a time, when its user names a configuration of an unknown
// hash and the hub manager starts again. For a minute from then on it keeps its place.
//
// Shows: hub/rollout-failed-noted
func TestWhoBeginsToAwaitItsOwnConfigurationAtARestartKeepsItsPlace(t *testing.T) {
	tmpl, unread := fixture.Template("t"), fixture.ConfigMap("c")
	for _, restarts := range []bool{false, true} {
		t.Run(fmt.Sprintf("restarts %t", restarts), func(t *testing.T) {
			r := newThree(tmpl)
			r.states[unread] = addonconfig.State{Unread: "the hub manager does not read it"}
			r.cma.Spec.InstallStrategy.Placements[0].RolloutStrategy.Progressive.ProgressDeadline = ""
			r.breaks(t, tmpl)
			require.False(t, isFailed(r.a), "it has no deadline")
			r.a.Spec.Configs = []addonv1beta1.AddOnConfig{unread}
			if restarts {
				r.r = &rollout.Reconciler{}
			}
			r.pass("bad")
			r.stays(t, tmpl, 0)
			for range 4 {
				r.pass("bad")
			}
			assert.Equal(t, "bad", r.hash(r.b, tmpl), "a holds nobody for more than a minute")
		})
	}
}

// As TestAFailureThatAnOlderHubManagerCountedCounts, and another content is rolled out when the hub manager starts.
//
// Shows: hub/rollout-failed-noted
func TestAFailureThatAnOlderHubManagerCountedIsOfItsContent(t *testing.T) {
	tmpl, none := fixture.Template("t"), fixture.DeploymentConfig("none")
	r := newThree(tmpl)
	r.states[none] = addonconfig.State{Missing: true}
	r.breaks(t, tmpl)
	r.a.Spec.Configs = []addonv1beta1.AddOnConfig{none}
	for range 4 {
		r.pass("bad")
	}
	meta.RemoveStatusCondition(&r.a.Status.Conditions, names.ConditionRolloutFailed)
	r.states[tmpl] = addonconfig.State{Hash: "good"}
	r.r = &rollout.Reconciler{}
	for range 40 {
		r.pass("bad")
	}
	assert.Equal(t, "good", r.hash(r.c, tmpl), "a did not fail with it; its conditions: %v", r.a.Status.Conditions)
}
