package configure

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"

	"github.com/spokelet/spokelet/hub/fleet"
	"github.com/spokelet/spokelet/hub/rollout"
	"github.com/spokelet/spokelet/internal/addonconfig"
	"github.com/spokelet/spokelet/internal/addonconfig/fixture"
)

// reports has the agent of cluster a report since when it is available or not.
func (r *three) reports(status metav1.ConditionStatus, since time.Time) {
	meta.RemoveStatusCondition(&r.a.Status.Conditions, "Available")
	r.a = fixture.With(r.a, fixture.Condition("Available", status, "Because", since))
}

// The agent of a failed, so that the rollout stops. It reports another date, or that nothing is known, and breaks its
// works. Two may move at a time.
//
// Shows: hub/rollout-failed-noted, hub/agents-clocks
func TestAnAgentThatDatesItsFallAgainExcusesNoFailure(t *testing.T) {
	tmpl := fixture.Template("t")
	for sentence, report := range map[string]struct {
		status metav1.ConditionStatus
		after  time.Duration
	}{
		"it fell now": {metav1.ConditionFalse, 0}, "it falls in a year": {metav1.ConditionFalse, 365 * 24 * time.Hour},
		"nothing is known": {metav1.ConditionUnknown, 0},
	} {
		t.Run(sentence, func(t *testing.T) {
			r := newThree(tmpl)
			r.loses(t, tmpl)
			require.True(t, isFailed(r.a))
			r.cma.Spec.InstallStrategy.Placements[0].RolloutStrategy.Progressive.MaxConcurrency = intstr.FromInt32(2)
			r.pass("")
			r.reports(report.status, fixture.Noon().Add(r.after+report.after))
			r.pass("")
			r.staysFor(t, tmpl, 40, "bad")
		})
	}
}

// All clusters soaked. The agent of a dates a fall back to when it got the content, and breaks its works.
//
// Shows: hub/agents-clocks
func TestAnAgentThatDatesItsFallBackStopsNobody(t *testing.T) {
	tmpl := fixture.Template("t")
	r := newThree(tmpl)
	fresh := r.c.DeepCopy()
	fresh.UID = "again"
	r.states[tmpl] = addonconfig.State{Hash: "v2"}
	for range 120 {
		r.pass("")
	}
	require.Equal(t, "v2", r.hash(r.c, tmpl))
	r.reports(metav1.ConditionFalse, meta.FindStatusCondition(r.a.Status.Conditions, "Progressing").LastTransitionTime.Time)
	for range 60 {
		r.pass("v2")
	}
	r.c = fresh
	for range 10 {
		r.pass("v2")
	}
	assert.False(t, isFailed(r.a), "%v", r.a.Status.Conditions)
	assert.Equal(t, "v2", r.hash(r.c, tmpl))
}

// Cluster a failed. Its add-on is deleted, a finalizer keeps it, and the hub manager starts again.
//
// Shows: hub/rollout-failed-noted
func TestAFailureOfAnAddOnThatGoesCountsAfterARestart(t *testing.T) {
	tmpl := fixture.Template("t")
	for sentence, restarts := range map[string]bool{"control: it goes on": false, "it starts again": true} {
		t.Run(sentence, func(t *testing.T) {
			r := newThree(tmpl)
			r.a.UID = "a"
			r.breaks(t, tmpl)
			require.True(t, isFailed(r.a))
			at := metav1.NewTime(fixture.Noon().Add(r.after))
			r.a.DeletionTimestamp, r.a.Finalizers = &at, []string{"example.com/kept"}
			if restarts {
				r.r = &rollout.Reconciler{}
			}
			all := placement("p", "a", "b", "c")
			seen := fleet.Seen{
				Key: types.NamespacedName{Namespace: "ns", Name: "p"}, Placement: all.placement,
				Pages: []*clusterv1beta1.PlacementDecision{all.page},
			}
			for n := range 60 {
				now := fixture.Noon().Add(r.after)
				r.r.Rehearse(rollout.World{
					Now: now, CMA: r.cma, States: r.states, Served: map[string]bool{"a": true},
					Placements: []*fleet.Decisions{fleet.NewDecisions(seen, fixture.Noon().Add(-time.Hour))},
					AddOns:     []*addonv1beta1.ManagedClusterAddOn{r.a, r.b, r.c},
				})
				r.b, r.c = r.configures(r.b), r.configures(r.c)
				r.after += 30 * time.Second
				if !r.stays(t, tmpl, n) {
					return
				}
			}
		})
	}
}
