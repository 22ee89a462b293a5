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
	clusterv1alpha1 "open-cluster-management.io/api/cluster/v1alpha1"

	"github.com/spokelet/spokelet/hub/rollout"
	"github.com/spokelet/spokelet/internal/addonconfig"
	"github.com/spokelet/spokelet/internal/addonconfig/fixture"
	"github.com/spokelet/spokelet/internal/names"
)

// Nothing is known of the agents for good, as of those that renew no lease. Cluster a times out, and has everything then.
//
// Shows: hub/rollout-failed-noted
func TestAnAgentThatReportsNothingIsNoFailureForGood(t *testing.T) {
	tmpl := fixture.Template("t")
	for _, status := range []metav1.ConditionStatus{"", "Unknown", "True"} {
		t.Run(string(status), func(t *testing.T) {
			r := newThree(tmpl)
			if status != "" {
				for _, a := range []*addonv1beta1.ManagedClusterAddOn{r.a, r.b, r.c} {
					fixture.With(a, fixture.Condition("Available", status, "ManagedClusterAddOnLeaseNotFound", fixture.Noon().Add(-time.Hour)))
				}
			}
			r.breaks(t, tmpl)
			require.True(t, isFailed(r.a))
			for range 300 {
				r.pass("")
			}
			assert.Equal(t, "bad", r.hash(r.c, tmpl), "a is complete: %v", r.a.Status.Conditions)
			assert.False(t, isFailed(r.a))
		})
	}
}

// As TestAnAgentThatReportsNothingIsNoFailureForGood, and a broke while it soaked.
//
// Shows: hub/rollout-failed-noted
func TestAnAgentThatReportsNothingIsWellWhenItsWorksAre(t *testing.T) {
	tmpl := fixture.Template("t")
	r := newThree(tmpl)
	for _, a := range []*addonv1beta1.ManagedClusterAddOn{r.a, r.b, r.c} {
		fixture.With(a, fixture.Condition("Available", "Unknown", "ManagedClusterAddOnLeaseNotFound", fixture.Noon().Add(-time.Hour)))
	}
	r.breaksWhileItSoaks(t, tmpl, 20)
	require.True(t, isFailed(r.a))
	for range 300 {
		r.pass("")
	}
	assert.Equal(t, "bad", r.hash(r.c, tmpl))
}

// Cluster a failed, its add-on is created again, and its works are well. The agent reports that, nothing, or that nothing is
// known.
//
// Shows: hub/rollout-failed-noted
func TestAFailedAddOnThatIsCreatedAgainGetsWell(t *testing.T) {
	tmpl := fixture.Template("t")
	for _, status := range []metav1.ConditionStatus{"", "True", "Unknown"} {
		for _, how := range []string{"breaks", "loses"} {
			t.Run(fmt.Sprintf("%s available %q", how, status), func(t *testing.T) {
				r := newThree(tmpl)
				r.a.UID = "first"
				fresh := r.a.DeepCopy()
				if how == "breaks" {
					r.breaks(t, tmpl)
				} else {
					r.loses(t, tmpl)
				}
				require.True(t, isFailed(r.a))
				r.a = fresh
				r.a.UID = "again"
				if status != "" {
					fixture.With(r.a, fixture.Condition("Available", status, "R", fixture.Noon().Add(r.after)))
				}
				for range 200 {
					r.pass("")
				}
				assert.Equal(t, "bad", r.hash(r.c, tmpl), "%v", meta.FindStatusCondition(r.a.Status.Conditions, names.ConditionRolloutFailed))
			})
		}
	}
}

// The strategy is All for a while, in which works turn or the agent is not heard of, and the hub manager starts again.
//
// Shows: hub/rollout-failed-noted
func TestAFailureOutlivesAStrategyThatCountsNoneAndAnAgentThatTurns(t *testing.T) {
	tmpl, none := fixture.Template("t"), fixture.DeploymentConfig("none")
	for _, how := range []string{"works break and heal", "unheard"} {
		for _, restarts := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s restarts %t", how, restarts), func(t *testing.T) {
				r := newThree(tmpl)
				r.states[none] = addonconfig.State{Missing: true}
				fresh := r.c.DeepCopy()
				fresh.UID = "again"
				r.loses(t, tmpl)
				require.True(t, isFailed(r.a))
				if how == "works break and heal" {
					r.pass("bad")
					r.pass("bad")
					require.True(t, isFailed(r.a))
				}
				strategy := &r.cma.Spec.InstallStrategy.Placements[0].RolloutStrategy
				was := *strategy.DeepCopy()
				*strategy = clusterv1alpha1.RolloutStrategy{Type: clusterv1alpha1.All}
				if how == "unheard" {
					r.a = r.a.DeepCopy()
					c := meta.FindStatusCondition(r.a.Status.Conditions, "Available")
					c.Status, c.LastTransitionTime = metav1.ConditionUnknown, metav1.NewTime(fixture.Noon().Add(r.after))
				}
				for range 4 {
					r.pass("")
				}
				if restarts {
					r.r = &rollout.Reconciler{}
				}
				*strategy = was
				strategy.Progressive.MaxConcurrency = intstr.FromInt(2)
				if how != "unheard" {
					r.a.Spec.Configs = []addonv1beta1.AddOnConfig{none}
				}
				r.pass("")
				r.c = fresh
				for range 60 {
					r.pass("")
				}
				assert.Empty(t, r.hash(r.c, tmpl), "a failed with it; failed: %t", isFailed(r.a))
			})
		}
	}
}

// As TestAFailureOutlivesAStrategyThatCountsNone, and All has no deadline.
//
// Shows: hub/rollout-failed-noted
func TestAFailureOutlivesAStrategyWithoutADeadline(t *testing.T) {
	tmpl, none := fixture.Template("t"), fixture.DeploymentConfig("none")
	for sentence, all := range map[string]clusterv1alpha1.RolloutStrategy{
		"control: All with a deadline": {Type: clusterv1alpha1.All, All: &clusterv1alpha1.RolloutAll{RolloutConfig: clusterv1alpha1.RolloutConfig{ProgressDeadline: "10m"}}},
		"All without":                  {Type: clusterv1alpha1.All},
	} {
		for _, restarts := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, restarts %t", sentence, restarts), func(t *testing.T) {
				r := newThree(tmpl)
				r.states[none] = addonconfig.State{Missing: true}
				fresh := r.c.DeepCopy()
				fresh.UID = "again"
				r.breaks(t, tmpl)
				require.True(t, isFailed(r.a))
				strategy := &r.cma.Spec.InstallStrategy.Placements[0].RolloutStrategy
				was := *strategy.DeepCopy()
				*strategy = all
				for range 10 {
					r.pass("bad")
				}
				require.True(t, isFailed(r.a), "its status says so all the time")
				r.a.Spec.Configs = []addonv1beta1.AddOnConfig{none}
				if restarts {
					r.r = &rollout.Reconciler{}
				}
				*strategy = was
				r.pass("bad")
				r.c = fresh
				for range 60 {
					r.pass("bad")
				}
				assert.Empty(t, r.hash(r.c, tmpl), "a failed with it, and is not well; failed: %t", isFailed(r.a))
			})
		}
	}
}
