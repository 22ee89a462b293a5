package fleet

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

// What the Placement says about its selection changes, and its decisions do not (none before, none after).
func TestWhatThePlacementSaysIsThatOfThePresent(t *testing.T) {
	s := decided([]string{}).but(ours)
	s.placement.Status.Conditions[0].Reason = "NoManagedClusterSetBindings"
	before := s.known()
	s.placement = s.placement.DeepCopy()
	s.placement.Status.Conditions[0].Reason = "NoManagedClusterMatched" // the binding was created
	d := NewDecisions(Seen{Key: before.Key, Placement: s.placement, Pages: s.pages, Own: true, Before: before}, noon())
	require.NotNil(t, d.Placement)
	assert.Equal(t, "NoManagedClusterMatched", d.Placement.Status.Conditions[0].Reason)
	s.placement = s.placement.DeepCopy()
	s.placement.Status.Conditions = append(s.placement.Status.Conditions, metav1.Condition{
		Type: clusterv1beta1.PlacementConditionMisconfigured, Status: metav1.ConditionTrue, Message: "expression is too dear"})
	d = NewDecisions(Seen{Key: before.Key, Placement: s.placement, Pages: s.pages, Own: true, Before: d}, noon())
	s.placement = s.placement.DeepCopy()
	s.placement.Status.Conditions[len(s.placement.Status.Conditions)-1].Message = "another cause"
	d = NewDecisions(Seen{Key: before.Key, Placement: s.placement, Pages: s.pages, Own: true, Before: d}, noon())
	assert.ErrorContains(t, d.Unfit, "another cause")
}

func TestWhetherOurOwnLookedAtAnEdit(t *testing.T) {
	looked := func(s *scene) {
		s.placement.Status.Conditions[len(s.placement.Status.Conditions)-1].ObservedGeneration = 2
	}
	for sentence, tc := range map[string]struct {
		s      *scene
		edited bool
	}{
		"one that is decided":                     {s: decided([]string{"a"}).but(ours)},
		"one that is edited":                      {s: decided([]string{"a"}).but(ours, func(s *scene) { s.placement.Generation++ }), edited: true},
		"one whose edit is misconfigured":         {s: decided([]string{"a"}).but(ours, misconfiguredNow, looked)},
		"one that an earlier version decided":     {s: decided([]string{"a"}).but(byAnEarlierVersion, misconfiguredNow, looked)},
		"the same, while nobody looked at it yet": {s: decided([]string{"a"}).but(byAnEarlierVersion, misconfiguredNow), edited: true},
		"one of another controller":               {s: decided([]string{"a"}).but(func(s *scene) { s.placement.Generation++ })},
	} {
		t.Run(sentence, func(t *testing.T) { assert.Equal(t, tc.edited, tc.s.known().Edited() != nil) })
	}
}

func TestAPlacementThatStaysAwayHoldsUpNobodyForever(t *testing.T) {
	scheme := runtime.NewScheme()
	require.NoError(t, clusterv1beta1.Install(scheme))
	clock := clocktesting.NewFakePassiveClock(noon())
	p := &Placements{Client: fake.NewClientBuilder().WithScheme(scheme).Build(), Clock: clock}
	uncertain := func() error {
		d, err := p.Decisions(t.Context(), types.NamespacedName{Namespace: "ns", Name: "gone"})
		require.NoError(t, err)
		_, err = d.Uncertain(clock.Now())
		return err
	}
	require.ErrorContains(t, uncertain(), "does not exist")
	clock.SetTime(noon().Add(FailoverPeriod - time.Second))
	require.Error(t, uncertain())
	clock.SetTime(noon().Add(FailoverPeriod))
	require.NoError(t, uncertain())
}

func TestAPageThatIsKeptSaysNothingWhenItIsEmpty(t *testing.T) {
	kept := func(clusters ...string) func(*scene) {
		return func(s *scene) {
			stray := pageOf(9, clusters...)
			stray.DeletionTimestamp = new(metav1.NewTime(noon()))
			s.pages = append(s.pages, stray)
		}
	}
	d := decided([]string{"a"}).but(ours, kept()).known()
	require.NoError(t, d.Incomplete)
	assert.Equal(t, []string{"a"}, d.Names)
	d = decided([]string{"a"}).but(ours, kept("z")).known()
	require.Error(t, d.Incomplete, "our placement has not decided without it yet")
	assert.Equal(t, []string{"a", "z"}, d.Names)
	d = decided([]string{"a"}).but(ours, kept("z"), scheduled).known()
	assert.Equal(t, []string{"a", "z"}, d.Names, "another controller goes on writing it")
}
