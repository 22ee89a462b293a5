package configure

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/spokelet/spokelet/hub/addon"
	"github.com/spokelet/spokelet/hub/rollout"
	"github.com/spokelet/spokelet/internal/addonconfig"
	"github.com/spokelet/spokelet/internal/addonconfig/fixture"
	"github.com/spokelet/spokelet/internal/names"
)

// isFailed reports whether the status of an add-on says that the rollout counts its cluster as failed.
func isFailed(addOn *addonv1beta1.ManagedClusterAddOn) bool {
	return meta.IsStatusConditionTrue(addOn.Status.Conditions, names.ConditionRolloutFailed)
}

// plans is a pass of the rollout alone.
func (r *three) plans() {
	now := fixture.Noon().Add(r.after)
	r.after += 30 * time.Second
	r.planOf(now, []string{"a", "b", "c"}, r.a, r.b, r.c)
}

// configures is a pass of the configurer alone, in which the works of an add-on are well.
func (r *three) configures(addOn *addonv1beta1.ManagedClusterAddOn) *addonv1beta1.ManagedClusterAddOn {
	now := fixture.Noon().Add(r.after)
	c := &Configurer{Admission: r.r.Admission}
	return c.Rehearse(r.cma, addOn, r.states, func(references []addonv1beta1.ConfigReference) addon.Progress {
		return addon.Progress{Now: now, Works: []*workv1.ManifestWork{fixture.Work("w", 3, references)}}
	})
}

// An agent failed. It is not heard of any more, and the hub manager starts again.
//
// Shows: hub/rollout-failed-noted
func TestAFailedAgentThatIsNotHeardOfIsNotWellAfterARestart(t *testing.T) {
	tmpl := fixture.Template("t")
	for sentence, restarts := range map[string]bool{"control: it goes on": false, "it starts again": true} {
		t.Run(sentence, func(t *testing.T) {
			r := newThree(tmpl)
			r.loses(t, tmpl)
			require.True(t, isFailed(r.a))
			r.a = r.a.DeepCopy()
			c := meta.FindStatusCondition(r.a.Status.Conditions, "Available")
			c.Status, c.LastTransitionTime = metav1.ConditionUnknown, metav1.NewTime(fixture.Noon().Add(r.after))
			r.pass("")
			r.pass("")
			require.True(t, isFailed(r.a))
			if restarts {
				r.r = &rollout.Reconciler{}
			}
			r.staysFor(t, tmpl, 60, "")
			assert.True(t, isFailed(r.a))
		})
	}
}

// An agent failed, by a clock that is hours ahead, and the hub manager starts again.
//
// Shows: hub/rollout-failed-noted
func TestAFailedAgentWhoseClockIsAheadIsNotWellAfterARestart(t *testing.T) {
	tmpl := fixture.Template("t")
	for sentence, restarts := range map[string]bool{"control: it goes on": false, "it starts again": true} {
		t.Run(sentence, func(t *testing.T) {
			r := newThree(tmpl)
			r.loses(t, tmpl)
			require.True(t, isFailed(r.a))
			r.a = r.a.DeepCopy()
			c := meta.FindStatusCondition(r.a.Status.Conditions, "Available")
			c.LastTransitionTime = metav1.NewTime(fixture.Noon().Add(r.after).Add(5 * time.Hour))
			r.pass("")
			if restarts {
				r.r = &rollout.Reconciler{}
			}
			r.staysFor(t, tmpl, 60, "")
		})
	}
}

// An agent failed, its works break, and the hub manager starts again.
//
// Shows: hub/rollout-failed-noted
func TestAFailedAgentWhoseWorksBreakIsNotWellAfterARestart(t *testing.T) {
	tmpl := fixture.Template("t")
	for sentence, restarts := range map[string]bool{"control: it goes on": false, "it starts again": true} {
		t.Run(sentence, func(t *testing.T) {
			r := newThree(tmpl)
			r.loses(t, tmpl)
			require.True(t, isFailed(r.a))
			r.pass("bad")
			if restarts {
				r.r = &rollout.Reconciler{}
			}
			r.staysFor(t, tmpl, 60, "bad")
			assert.True(t, isFailed(r.a))
		})
	}
}

// A hub manager that does not know the condition counted a cluster as failed whose user then named a configuration of an
// unknown hash.
//
// Shows: hub/rollout-failed-noted
func TestAFailureThatAnOlderHubManagerCountedCounts(t *testing.T) {
	tmpl, unread := fixture.Template("t"), fixture.ConfigMap("c")
	for sentence, older := range map[string]bool{"control: the one before wrote the condition": false, "the one before does not know it": true} {
		t.Run(sentence, func(t *testing.T) {
			r := newThree(tmpl)
			r.states[unread] = addonconfig.State{Unread: "the hub manager does not read it"}
			r.breaks(t, tmpl)
			require.True(t, isFailed(r.a))
			r.a.Spec.Configs = []addonv1beta1.AddOnConfig{unread}
			for n := range 20 {
				r.pass("bad")
				require.True(t, r.stays(t, tmpl, n))
			}
			if older {
				r.a = r.a.DeepCopy()
				meta.RemoveStatusCondition(&r.a.Status.Conditions, names.ConditionRolloutFailed)
			}
			r.r = &rollout.Reconciler{}
			r.staysFor(t, tmpl, 60, "bad")
		})
	}
}

// A cluster that failed is well again. The hub manager is killed when it has written that, and its user names a
// configuration of an unknown hash.
//
// Shows: hub/rollout-failed-noted
func TestARecoveryCountsThoughTheHubManagerDiedAfterIt(t *testing.T) {
	tmpl, unread := fixture.Template("t"), fixture.ConfigMap("c")
	for sentence, killed := range map[string]bool{"control: it is not": false, "it is killed": true} {
		t.Run(sentence, func(t *testing.T) {
			r := newThree(tmpl)
			r.states[unread] = addonconfig.State{Unread: "the hub manager does not read it"}
			r.breaks(t, tmpl)
			require.True(t, isFailed(r.a))
			r.a = r.configures(r.a) // It is well again.
			require.Equal(t, "Completed", meta.FindStatusCondition(r.a.Status.Conditions, "Progressing").Reason)
			r.after += 30 * time.Second
			if killed {
				r.r = &rollout.Reconciler{}
			} else {
				r.plans()
				r.a = r.configures(r.a)
			}
			r.a = r.a.DeepCopy()
			r.a.Spec.Configs = []addonv1beta1.AddOnConfig{unread}
			if killed {
				r.a = r.configures(r.a) // The pass of the add-on may come first.
			}
			for range 120 {
				r.pass("")
			}
			assert.Equal(t, "bad", r.hash(r.b, tmpl), "a is well but for what its user names: %v", r.a.Status.Conditions)
			assert.False(t, isFailed(r.a))
		})
	}
}

// A user names a configuration that is not known. After an hour it is. The hub manager starts again before or after that. A
// minute later, the cluster has not failed.
//
// Shows: hub/rollout-failed-noted
func TestARepairedConfigurationHasAWholeDeadlineAfterARestart(t *testing.T) {
	tmpl, unread, none := fixture.Template("t"), fixture.ConfigMap("c"), fixture.DeploymentConfig("none")
	for sentence, tc := range map[string]struct {
		own       addonv1beta1.AddOnConfig
		restartAt int // passes after the repair; negative: before
	}{
		"control: unknown hash, no restart": {unread, 1000},
		"unknown hash, restart before":      {unread, -5},
		"unknown hash, restart after":       {unread, 1},
		"control: missing, no restart":      {none, 1000},
		"missing, restart before":           {none, -5},
		"missing, restart after":            {none, 1},
	} {
		t.Run(sentence, func(t *testing.T) {
			r := newThree(tmpl)
			r.states[unread] = addonconfig.State{Unread: "the hub manager does not read it"}
			r.states[none] = addonconfig.State{Missing: true}
			r.states[tmpl] = addonconfig.State{Hash: "new"}
			fresh := r.c.DeepCopy()
			fresh.UID = "again"
			for range 120 {
				r.pass("")
			}
			r.states[tmpl] = addonconfig.State{Hash: "v2"}
			r.pass("v2")
			r.pass("v2")
			require.Equal(t, "v2", r.hash(r.a, tmpl))
			r.a.Spec.Configs = []addonv1beta1.AddOnConfig{tc.own}
			for n := range 120 {
				if n-120 == tc.restartAt {
					r.r = &rollout.Reconciler{}
				}
				r.pass("v2")
			}
			require.Equal(t, "v2", r.hash(r.c, tmpl), "a holds nobody")
			require.False(t, isFailed(r.a))
			r.states[none] = addonconfig.State{Hash: "n"}
			r.a = r.a.DeepCopy()
			for i := range r.a.Status.ConfigReferences {
				if reference := &r.a.Status.ConfigReferences[i]; reference.Resource == unread.Resource {
					reference.DesiredConfig.SpecHash = "reported"
				}
			}
			for n := range 6 { // three minutes, of ten
				if n == tc.restartAt {
					r.r = &rollout.Reconciler{}
				}
				r.pass("v2")
				if !assert.False(t, isFailed(r.a), "pass %d: it is on its way for %d minutes of 10: %v", n, (n+1)/2,
					meta.FindStatusCondition(r.a.Status.Conditions, "Progressing")) {
					break
				}
			}
			// The user names another one of an unknown state.
			r.c = fresh
			r.a.Spec.Configs = []addonv1beta1.AddOnConfig{fixture.DeploymentConfig("none2")}
			r.states[fixture.DeploymentConfig("none2")] = addonconfig.State{Missing: true}
			for range 60 {
				r.pass("v2")
			}
			assert.Equal(t, "v2", r.hash(r.c, tmpl), "nobody failed, and the rollout stopped for ever; a: %v", isFailed(r.a))
		})
	}
}

// A hub manager that does not know the condition left it, gave another content, and then this one again. The cluster is on
// its way to it for a minute.
//
// Shows: hub/rollout-failed-noted
func TestAConditionOfAnEarlierRoundCountsForNothing(t *testing.T) {
	tmpl, unread := fixture.Template("t"), fixture.ConfigMap("c")
	for sentence, older := range map[string]bool{"control": false, "older in between": true} {
		t.Run(sentence, func(t *testing.T) {
			r := newThree(tmpl)
			r.states[unread] = addonconfig.State{Unread: "the hub manager does not read it"}
			r.breaks(t, tmpl)
			require.True(t, isFailed(r.a))
			failed := *meta.FindStatusCondition(r.a.Status.Conditions, "addon.spokelet.io/RolloutFailed")
			r.states[tmpl] = addonconfig.State{Hash: "good"}
			for range 120 {
				r.pass("bad")
			}
			require.Equal(t, "good", r.hash(r.c, tmpl))
			r.states[tmpl] = addonconfig.State{Hash: "bad"}
			r.pass("bad")
			r.pass("bad")
			require.Equal(t, "bad", r.hash(r.a, tmpl))
			r.a.Spec.Configs = []addonv1beta1.AddOnConfig{unread}
			r.pass("bad")
			r.pass("bad")
			if older {
				r.a = r.a.DeepCopy()
				r.a.Status.Conditions = append(r.a.Status.Conditions, failed)
			}
			r.r = &rollout.Reconciler{}
			for range 120 {
				r.pass("bad")
			}
			assert.Equal(t, "bad", r.hash(r.b, tmpl), "a awaits since a minute what its spec names, and has not failed since the content is rolled out again")
		})
	}
}
