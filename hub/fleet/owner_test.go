package fleet

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"k8s.io/apimachinery/pkg/types"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
)

func TestWhichPlacementAClusterBelongsTo(t *testing.T) {
	a, b := decided([]string{"a"}).known(), decided([]string{"b"}).known()
	unfinished := decided([]string{"b"}).but(func(s *scene) { s.placement.Status.NumberOfSelectedClusters++ }).known()
	edited := decided([]string{"b"}).but(ours, func(s *scene) { s.placement.Generation++ }).known()
	missing := NewDecisions(a.Key, nil, nil, false, noon(), nil)
	missingLong := NewDecisions(a.Key, nil, nil, false, noon().Add(-FailoverPeriod), nil)
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
			doubts: []Doubt{{Index: 1, Why: missing.Incomplete, Until: noon().Add(FailoverPeriod)}},
		},
		"perhaps the last, which stays away": {
			placements: list{a, missingLong}, index: 0, doubts: []Doubt{{Index: 1, Why: missingLong.Incomplete, Lapsed: true}},
		},
		"the last, whatever an earlier one decides": {placements: list{unfinished, a}, index: 1},
		"perhaps any of those that have not finished": {
			placements: list{missing, unfinished}, index: -1, doubts: []Doubt{
				{Index: 1, Why: unfinished.Incomplete},
				{Index: 0, Why: missing.Incomplete, Until: noon().Add(FailoverPeriod)},
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
	before := p.versionsOf(s.placement, pages())
	p.known = map[types.NamespacedName]known{}
	reversed := []clusterv1beta1.PlacementDecision{pages()[1], pages()[0]}
	assert.Equal(t, before, p.versionsOf(s.placement, reversed), "a cache lists in any order")
	s.placement.ResourceVersion = "2"
	assert.NotEqual(t, before, p.versionsOf(s.placement, pages()))
	s.placement.ResourceVersion = ""
	s.pages[0].ResourceVersion = "2"
	assert.NotEqual(t, before, p.versionsOf(s.placement, pages()))
	s.pages[0].ResourceVersion = ""
	s.pages[0].UID = "created again"
	assert.NotEqual(t, before, p.versionsOf(s.placement, pages()))
	assert.NotEqual(t, before, p.versionsOf(nil, pages()))
	assert.NotEqual(t, before, p.versionsOf(s.placement, pages()[:1]))
}
