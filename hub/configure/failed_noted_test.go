package configure

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"

	"github.com/spokelet/spokelet/hub/rollout"
	"github.com/spokelet/spokelet/internal/addonconfig"
	"github.com/spokelet/spokelet/internal/addonconfig/fixture"
	"github.com/spokelet/spokelet/internal/names"
)

// Cluster a is on its way for a minute when its spec names a configuration of an unknown hash, for an hour: it holds
// nobody. The hash is reported. A minute later, a names another configuration, which does not exist, and the hub manager
// starts again. Cluster a has never failed, so that c, whose add-on is new, gets its turn.
//
// Shows: hub/rollout-failures
func TestWhoAwaitedItsOwnConfigurationHasNotFailedAfterARestart(t *testing.T) {
	tmpl, unread, none := fixture.Template("t"), fixture.ConfigMap("c"), fixture.DeploymentConfig("none")
	for sentence, restarts := range map[string]bool{"control: the hub manager goes on": false, "it starts again": true} {
		t.Run(sentence, func(t *testing.T) {
			r := newThree(tmpl)
			r.states[unread] = addonconfig.State{Unread: "the hub manager does not read it"}
			r.states[none], r.states[tmpl] = addonconfig.State{Missing: true}, addonconfig.State{Hash: "new"}
			fresh := r.c.DeepCopy()
			fresh.UID = "again"
			for range 120 {
				r.pass("")
			}
			r.states[tmpl] = addonconfig.State{Hash: "v2"}
			r.pass("v2")
			r.pass("v2")
			require.Equal(t, "v2", r.hash(r.a, tmpl))
			r.a.Spec.Configs = []addonv1beta1.AddOnConfig{unread}
			for range 120 {
				r.pass("v2")
			}
			require.Equal(t, "v2", r.hash(r.c, tmpl), "a holds nobody")
			r.a = r.a.DeepCopy()
			for i := range r.a.Status.ConfigReferences {
				if reference := &r.a.Status.ConfigReferences[i]; reference.Resource == unread.Resource {
					reference.DesiredConfig.SpecHash = "reported"
				}
			}
			r.pass("v2")
			r.pass("v2")
			r.a.Spec.Configs = []addonv1beta1.AddOnConfig{none}
			r.pass("v2")
			r.pass("v2")
			if restarts {
				r.r = &rollout.Reconciler{}
			}
			r.c = fresh
			for range 20 {
				r.pass("v2")
			}
			assert.Equal(t, "v2", r.hash(r.c, tmpl), "a has not failed; its conditions: %v", r.a.Status.Conditions)
		})
	}
}

// A cluster takes turns between well and broken, beyond its deadline. The condition is about the last turn, so that it
// counts for a hub manager that starts then.
//
// Shows: hub/rollout-failed-noted
func TestTheConditionFollowsTheTurnsOfACluster(t *testing.T) {
	tmpl := fixture.Template("t")
	r := newThree(tmpl)
	r.breaksWhileItSoaks(t, tmpl, 80)
	require.True(t, isFailed(r.a))
	r.pass("")
	r.pass("")
	turned := meta.FindStatusCondition(r.a.Status.Conditions, "Progressing")
	require.Equal(t, "Completed", turned.Reason)
	condition := meta.FindStatusCondition(r.a.Status.Conditions, names.ConditionRolloutFailed)
	require.NotNil(t, condition, "it soaks beyond the deadline")
	assert.False(t, condition.LastTransitionTime.Before(&turned.LastTransitionTime), "%s and %s", condition, turned)
}

// The status of an add-on says that its cluster failed, while it did, and about the content with which it did.
//
// Shows: hub/rollout-failed-noted
func TestTheStatusSaysThatTheRolloutCountsAClusterAsFailed(t *testing.T) {
	tmpl := fixture.Template("t")
	r := newThree(tmpl)
	passes := func(breaks string, number int) {
		for range number {
			r.pass(breaks)
		}
	}
	r.breaks(t, tmpl)
	require.True(t, isFailed(r.a))
	assert.False(t, isFailed(r.b) || isFailed(r.c))
	condition := *meta.FindStatusCondition(r.a.Status.Conditions, names.ConditionRolloutFailed)
	assert.Contains(t, condition.Message, "progressDeadline")

	r.r = &rollout.Reconciler{}
	passes("bad", 10)
	assert.Equal(t, condition, *meta.FindStatusCondition(r.a.Status.Conditions, names.ConditionRolloutFailed),
		"a restart writes nothing")

	r.states[tmpl] = addonconfig.State{Hash: "worse"}
	passes("worse", 4)
	require.Equal(t, "worse", r.hash(r.a, tmpl))
	assert.False(t, isFailed(r.a), "another content begins again")
	passes("worse", 40)
	require.True(t, isFailed(r.a))
	assert.NotEqual(t, condition.Message, meta.FindStatusCondition(r.a.Status.Conditions, names.ConditionRolloutFailed).Message)

	passes("", 2)
	assert.False(t, isFailed(r.a), "it is well")
	passes("", 60)
	assert.Equal(t, "worse", r.hash(r.c, tmpl))
}
