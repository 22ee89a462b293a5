package fleet

import (
	"fmt"
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

func TestWhichPlacementAClusterBelongsTo(t *testing.T) {
	a, b := decided([]string{"a"}).known(), decided([]string{"b"}).known()
	unfinished := decided([]string{"b"}).but(func(s *scene) { s.placement.Status.NumberOfSelectedClusters++ }).known()
	edited := decided([]string{"b"}).but(ours, func(s *scene) { s.placement.Generation++ }).known()
	missing := NewDecisions(Seen{Key: a.Key}, noon())
	missingLong := NewDecisions(Seen{Key: a.Key}, noon().Add(-FailoverPeriod))
	type list = []*Decisions
	for sentence, tc := range map[string]struct {
		placements list
		index      int
		doubts     []Doubt
	}{
		"the only one that selects it":            {placements: list{a}, index: 0},
		"the last that selects it":                {placements: list{a, a}, index: 1},
		"none":                                    {placements: list{b}, index: -1},
		"none are listed":                         {index: -1},
		"an earlier one, as the last has decided": {placements: list{a, b}, index: 0},
		"perhaps the last, which is unfinished": {
			placements: list{a, unfinished}, index: 0, doubts: []Doubt{{Index: 1, Why: unfinished.Incomplete}},
		},
		"perhaps the last, which was edited": {
			placements: list{a, edited}, index: 0, doubts: []Doubt{{Index: 1, Why: edited.Edited()}},
		},
		"perhaps the last, which is about to come back": {
			placements: list{a, missing}, index: 0,
			doubts: []Doubt{{Index: 1, Why: missing.Incomplete, Missing: true, Until: noon().Add(FailoverPeriod)}},
		},
		"perhaps the last, which stays away": {
			placements: list{a, missingLong}, index: 0, doubts: []Doubt{{Index: 1, Why: missingLong.Incomplete, Missing: true}},
		},
		"the last, whatever an earlier one decides": {placements: list{unfinished, a}, index: 1},
		"perhaps any of those that have not finished": {
			placements: list{missing, unfinished}, index: -1, doubts: []Doubt{
				{Index: 1, Why: unfinished.Incomplete},
				{Index: 0, Why: missing.Incomplete, Missing: true, Until: noon().Add(FailoverPeriod)},
			},
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			assert.Equal(t, Owner{Index: tc.index, Doubts: tc.doubts}, OwnerOf("a", tc.placements, noon()))
		})
	}
}

func TestDecisionsAreReadAgainAfterAChangeOnly(t *testing.T) {
	s := decided([]string{"a"})
	p := &Placements{}
	pages := func() []clusterv1beta1.PlacementDecision {
		return []clusterv1beta1.PlacementDecision{*s.pages[0], *pageOf(2)}
	}
	before := p.versionsOf(s.placement, each(pages()))
	p.known = map[types.NamespacedName]known{}
	reversed := []clusterv1beta1.PlacementDecision{pages()[1], pages()[0]}
	assert.Equal(t, before, p.versionsOf(s.placement, each(reversed)), "a cache lists in any order")
	s.placement.ResourceVersion = "2"
	assert.NotEqual(t, before, p.versionsOf(s.placement, each(pages())))
	s.placement.ResourceVersion = ""
	s.pages[0].ResourceVersion = "2"
	assert.NotEqual(t, before, p.versionsOf(s.placement, each(pages())))
	s.pages[0].ResourceVersion = ""
	s.pages[0].UID = "created again"
	assert.NotEqual(t, before, p.versionsOf(s.placement, each(pages())))
	assert.NotEqual(t, before, p.versionsOf(nil, each(pages())))
	assert.NotEqual(t, before, p.versionsOf(s.placement, each(pages()[:1])))
}

// Shows: hub/placement-in-doubt
func TestAPlacementThatComesAndGoesHoldsOthersOnceOnly(t *testing.T) {
	scheme := runtime.NewScheme()
	require.NoError(t, clusterv1beta1.Install(scheme))
	clock := clocktesting.NewFakePassiveClock(noon())
	c := fake.NewClientBuilder().WithScheme(scheme).Build()
	p := &Placements{Client: c, Own: true, Clock: clock}
	key := types.NamespacedName{Namespace: "ns", Name: "p"}
	held := 0
	for range 20 {
		placement := &clusterv1beta1.Placement{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}
		require.NoError(t, c.Create(t.Context(), placement))
		_, err := p.Decisions(t.Context(), key)
		require.NoError(t, err)
		require.NoError(t, c.Delete(t.Context(), placement))
		_, err = p.Decisions(t.Context(), key)
		require.NoError(t, err)
		clock.SetTime(clock.Now().Add(FailoverPeriod - 10*time.Second))
		owner, err := p.Owner(t.Context(), []types.NamespacedName{key}, "cluster")
		require.NoError(t, err)
		if len(owner.Doubts) > 0 && !owner.Doubts[0].Until.IsZero() {
			held++
		}
	}
	assert.Equal(t, 1, held)
}

// Shows: hub/placement-in-doubt
func TestThousandsOfMissingPlacementsMakeNoneNewer(t *testing.T) {
	scheme := runtime.NewScheme()
	require.NoError(t, clusterv1beta1.Install(scheme))
	clock := clocktesting.NewFakePassiveClock(noon())
	p := &Placements{Client: fake.NewClientBuilder().WithScheme(scheme).Build(), Own: true, Clock: clock}
	missing := []types.NamespacedName{{Namespace: "ns", Name: "missing"}}
	holds := func() bool {
		owner, err := p.Owner(t.Context(), missing, "cluster")
		require.NoError(t, err)
		return !owner.Doubts[0].Until.IsZero()
	}
	require.True(t, holds())
	clock.SetTime(clock.Now().Add(FailoverPeriod))
	require.False(t, holds())
	for n := range maxKnown + 10 {
		_, err := p.Decisions(t.Context(), types.NamespacedName{Namespace: "author", Name: fmt.Sprint("p", n)})
		require.NoError(t, err)
	}
	assert.False(t, holds())
	assert.LessOrEqual(t, len(p.known), maxKnown)
}
