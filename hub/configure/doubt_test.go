package configure

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/util/workqueue"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1alpha1 "open-cluster-management.io/api/cluster/v1alpha1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/spokelet/spokelet/hub/fleet"
	"github.com/spokelet/spokelet/hub/rollout"
	"github.com/spokelet/spokelet/internal/addonconfig"
	"github.com/spokelet/spokelet/internal/addonconfig/fixture"
)

// A rollout must not give a slot to a cluster whose add-on keeps its configuration because of a Placement that is gone
// for long: it never reaches its target, and all others wait for it.
func TestAKeptClusterTakesTheSlotOfARolloutForEver(t *testing.T) {
	low, high, old := fixture.DeploymentConfig("low"), fixture.DeploymentConfig("high"), fixture.DeploymentConfig("default")
	cma := fixture.NewCMA([]addonv1beta1.AddOnConfig{old},
		fixture.ByStrategy(clusterv1alpha1.RolloutStrategy{
			Type: clusterv1alpha1.Progressive, Progressive: &clusterv1alpha1.RolloutProgressive{MaxConcurrency: intstr.FromInt32(1)},
		}, fixture.Placement("low", low)), fixture.Placement("high", high))
	states := addonconfig.States{low: {Hash: "l"}, high: {Hash: "h"}, old: {Hash: "o"}}
	now := fixture.Noon()
	lowKey, highKey := types.NamespacedName{Namespace: "ns", Name: "low"}, types.NamespacedName{Namespace: "ns", Name: "high"}
	both := placement("low", "c1", "c2", "c3")
	decisions := []*fleet.Decisions{
		fleet.NewDecisions(fleet.Seen{Key: lowKey, Placement: both.placement, Pages: []*clusterv1beta1.PlacementDecision{both.page}}, now.Add(-time.Hour)),
		fleet.NewDecisions(fleet.Seen{Key: highKey}, now.Add(-time.Hour)), // deleted for good, and still listed
	}
	addOns := []*addonv1beta1.ManagedClusterAddOn{
		fixture.With(fixture.AddOn("c1", fixture.Has(high, "h")), fixture.IsTrue("Configured")),
		fixture.With(fixture.AddOn("c2", fixture.Has(old, "o")), fixture.IsTrue("Configured")),
		fixture.With(fixture.AddOn("c3", fixture.Has(old, "o")), fixture.IsTrue("Configured")),
	}
	r := &rollout.Reconciler{}
	c := &Configurer{Admission: r.Admission}
	for hour := range 48 {
		now = now.Add(time.Hour)
		r.Rehearse(rollout.World{Now: now, CMA: cma, Placements: decisions, AddOns: addOns, States: states})
		for i, addOn := range addOns {
			owner := fleet.OwnerOf(addOn.Namespace, decisions, now)
			f := facts{addOn: addOn, cma: cma, placement: owner.Index, doubts: owner.Doubts, states: states}
			f.planned = c.planned(f)
			f.admission = c.Admission(addOn, f.target().Rolled())
			decided := decide(f)
			references := decided.references
			if decided.held == "" { // The cluster applies what it gets within the hour.
				for j := range references {
					references[j].LastAppliedConfig = references[j].DesiredConfig.DeepCopy()
				}
			}
			addOns[i] = addOn.DeepCopy()
			addOns[i].Status.ConfigReferences = references
			addOns[i].Status.Conditions = []metav1.Condition{fixture.IsTrue("Configured"), fixture.Condition("Progressing",
				metav1.ConditionFalse, addonv1beta1.ProgressingReasonCompleted, now)}
			if hour == 47 {
				t.Log(addOn.Namespace, "has", references[0].DesiredConfig.Name, "held:", decided.held, f.admission)
			}
		}
	}
	assert.Equal(t, "low", addOns[1].Status.ConfigReferences[0].DesiredConfig.Name,
		"a Placement that is gone for two days holds up c2, which it never selected")
	assert.Equal(t, "low", addOns[2].Status.ConfigReferences[0].DesiredConfig.Name)
}

// An add-on that runs without any configuration is not new: it has that to keep.
func TestAnAddOnThatRunsWithoutConfigurationsKeepsThat(t *testing.T) {
	cma := fixture.NewCMA(nil, fixture.Placement("low", fixture.DeploymentConfig("low")), fixture.Placement("high"))
	addOn := fixture.With(fixture.AddOn("c1"), fixture.IsTrue("Configured"), fixture.IsTrue("ManifestApplied"),
		fixture.IsTrue("Available"), fixture.Condition("Progressing", metav1.ConditionFalse,
			addonv1beta1.ProgressingReasonCompleted, fixture.Noon()))
	key := types.NamespacedName{Namespace: "ns", Name: "high"}
	low, now := placement("low", "c1"), fixture.Noon()
	lowDecided := fleet.NewDecisions(fleet.Seen{Key: types.NamespacedName{Namespace: "ns", Name: "low"}, Placement: low.placement, Pages: []*clusterv1beta1.PlacementDecision{low.page}}, now)
	highDecided := fleet.NewDecisions(fleet.Seen{Key: key}, now) // replaced by a GitOps tool at this moment
	owner := fleet.OwnerOf("c1", []*fleet.Decisions{lowDecided, highDecided}, now)
	require.Len(t, owner.Doubts, 1)
	decided := decide(facts{
		addOn: addOn, cma: cma, placement: owner.Index, doubts: owner.Doubts, admission: addonconfig.Admission{Granted: true},
		states: addonconfig.States{fixture.DeploymentConfig("low"): {Hash: "l"}},
	})
	assert.Empty(t, decided.references, "it changes to the configuration of another placement while it is in doubt")
	assert.NotEmpty(t, decided.held)
}

// hookClock runs something once, at the next question for the time.
type hookClock struct {
	now  time.Time
	hook func()
}

func (c *hookClock) Now() time.Time {
	if hook := c.hook; hook != nil {
		c.hook = nil
		hook()
	}
	return c.now
}

func (c *hookClock) Since(t time.Time) time.Duration { return c.now.Sub(t) }

// set replaces a Placement and its PlacementDecision.
func (s *selected) set(t *testing.T, p placed) {
	t.Helper()
	page := p.page.DeepCopy()
	require.NoError(t, client.IgnoreNotFound(s.c.Client.Delete(t.Context(), p.placement.DeepCopy())))
	require.NoError(t, client.IgnoreNotFound(s.c.Client.Delete(t.Context(), page)))
	fresh := p.placement.DeepCopy()
	fresh.ResourceVersion, page.ResourceVersion = "", ""
	require.NoError(t, s.c.Client.Create(t.Context(), fresh))
	page.OwnerReferences[0].UID = fresh.UID
	if len(page.Status.Decisions) > 0 {
		require.NoError(t, s.c.Client.Create(t.Context(), page))
	}
}

func (s *selected) tells(t *testing.T, p placed) int {
	t.Helper()
	q := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[ctrl.Request]())
	defer q.ShutDown()
	s.c.wakesAwaiting(placementOfDecision).Create(t.Context(), event.CreateEvent{Object: p.page}, q)
	return q.Len()
}

// Two controllers ask about an add-on at the same time: the one that knows less must not make the other deaf.
func TestWhoOnlyReadsDoesNotForgetWhatTheDeployerAwaits(t *testing.T) {
	s := newSelected(t, "high", []string{"low", "high"},
		append(placement("low", "c1").objects(), placement("high", "c1").objects()...)...)
	clock := &hookClock{now: fixture.Noon()}
	s.c.Placements.Clock = clock
	configs, _, _ := s.pass(t)
	require.Equal(t, []string{"high"}, configs)
	var says string
	clock.hook = func() { // the reader has read that "high" selects the cluster
		s.set(t, placement("high")) // it is replaced, and has not decided
		configs, says, _ = s.pass(t)
	}
	_, err := s.c.Reading().Configure(t.Context(), s.addOn)
	require.NoError(t, err)
	require.Nil(t, clock.hook)
	require.Equal(t, []string{"high"}, configs)
	require.Contains(t, says, "kept as it is")
	s.set(t, placement("high", "c2"))
	assert.Equal(t, 1, s.tells(t, placement("high", "c2")), "the add-on is held, and nothing wakes it when the Placement has decided")
}

// The answer that counts is about another Placement than the first one.
func TestADoubtThatComesBetweenTheTwoAnswersIsAwaited(t *testing.T) {
	objects := append(placement("low", "c1").objects(), placement("mid").placement)
	objects = append(objects, placement("high", "c1").objects()...)
	s := newSelected(t, "high", []string{"low", "mid", "high"}, objects...)
	s.set(t, placement("mid"))
	s.set(t, placement("high", "c2"))
	clock := &hookClock{now: fixture.Noon()}
	s.c.Placements.Clock = clock
	_, err := s.c.Placements.Owner(t.Context(), placementsOf(mustCMA(t, s)), "c1")
	require.NoError(t, err)
	clock.hook = func() { // between the two answers
		s.set(t, placement("mid", "c2"))
		require.Zero(t, s.tells(t, placement("mid", "c2")), "no add-on awaits it yet")
		s.set(t, placement("high"))
	}
	configs, says, _ := s.pass(t)
	require.Equal(t, []string{"high"}, configs)
	require.Contains(t, says, "placement ns/high")
	require.NotContains(t, says, "placement ns/mid")
	s.set(t, placement("high", "c2"))
	assert.Equal(t, 1, s.tells(t, placement("high", "c2")), "the add-on is held by high, and nothing wakes it when that has decided")
}

func mustCMA(t *testing.T, s *selected) *addonv1beta1.ClusterManagementAddOn {
	t.Helper()
	cma, err := s.c.AddOns.GetClusterManagementAddOn(t.Context(), "hello")
	require.NoError(t, err)
	return cma
}

// What the two tests above expect happens where nothing comes in between.
func TestTheLastDecisionWakes(t *testing.T) {
	objects := append(placement("low", "c1").objects(), placement("mid").placement)
	s := newSelected(t, "high", []string{"low", "mid", "high"}, append(objects, placement("high", "c1").objects()...)...)
	s.set(t, placement("mid", "c2"))
	s.set(t, placement("high"))
	_, says, _ := s.pass(t)
	require.Contains(t, says, "placement ns/high")
	s.set(t, placement("high", "c2"))
	assert.Equal(t, 1, s.tells(t, placement("high", "c2")))
}
