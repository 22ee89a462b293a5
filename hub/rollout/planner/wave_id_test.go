package planner

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// Shows: policies/policy-wave-named
func TestInWhichWaveAClusterIs(t *testing.T) {
	const perGroup, first = "type: ProgressivePerGroup", "{mandatoryDecisionGroups: [{groupName: canary}]}"
	for sentence, tc := range map[string]struct {
		strategy string
		group    int
		name     string
		says     string
	}{
		"all clusters of a strategy without groups": {"type: Progressive", 3, "west", "all clusters"},
		"a mandatory group":                         {"type: Progressive\nprogressive: " + first, 0, "canary", "mandatory decision group 0 (canary)"},
		"the rest after mandatory groups":           {"type: Progressive\nprogressive: " + first, 3, "west", "all other clusters"},
		"one of many groups":                        {perGroup, 3, "west", "decision group 3 (west)"},
		"a group without a name":                    {perGroup, 3, "", "decision group 3"},
		"a mandatory one of many groups":            {perGroup + "\nprogressivePerGroup: " + first, 0, "canary", "mandatory decision group 0 (canary)"},
		"clusters without a group":                  {perGroup, -1, "", "the clusters without a decision group"},
		"a strategy that cannot be used":            {"type: Sometimes", 3, "west", "all clusters"},
	} {
		t.Run(sentence, func(t *testing.T) {
			assert.Equal(t, tc.says, WavesOf(strategy(t, tc.strategy)).Of(tc.group, tc.name).String())
		})
	}
}

func TestTheKeyOfAWaveIsThatOfNoOtherWave(t *testing.T) {
	keys := map[string]string{}
	for _, text := range []string{
		"type: Progressive", "type: ProgressivePerGroup",
		"type: Progressive\nprogressive: {mandatoryDecisionGroups: [{groupIndex: 1}]}",
		"type: Progressive\nprogressive: {mandatoryDecisionGroups: [{groupIndex: 1}, {groupIndex: 2}]}",
	} {
		waves := WavesOf(strategy(t, text))
		for group := -1; group < 3; group++ {
			wave := waves.Of(group, "")
			key, title := wave.Key(), wave.String()+" of "+text
			if title == "mandatory decision group 1 of "+text {
				title = "mandatory decision group 1" // The same clusters, whatever comes after them.
			}
			if known, has := keys[key]; has {
				assert.Equal(t, known, title)
			}
			keys[key] = title
		}
	}
	assert.Greater(t, len(keys), 6)
}

func TestTheWaveThatHasItsTurnIsTheFirstThatIsNotFinished(t *testing.T) {
	for sentence, tc := range map[string]struct{ clusters, turn string }{
		"the first one moves":                     {"a/0 flying, b/1 pending, c/2 pending", "decision group 0"},
		"the first one waits for a window":        {"a/0 pending gated, b/1 pending gated", "decision group 0"},
		"the first one is done":                   {"a/0 done, b/1 pending gated, c/2 pending gated", "decision group 1"},
		"the first one waits for what it has not": {"a/0 pending held, b/1 pending", "decision group 1"},
		"all are done":                            {"a/0 done, b/1 done", ""},
	} {
		t.Run(sentence, func(t *testing.T) {
			p := Placement{Strategy: strategy(t, "type: ProgressivePerGroup"), Clusters: clusters(t, tc.clusters)}
			result := Make(Fleet{Now: noon, Placements: []Placement{p}}).Placements[0]
			if tc.turn == "" {
				assert.Zero(t, result.Wave)
				return
			}
			assert.Equal(t, tc.turn, result.Turn.String())
			for _, c := range p.Clusters {
				assert.Equal(t, c.Group == result.Turn.key.index, WavesOf(p.Strategy).Of(c.Group, c.GroupName) == result.Turn)
			}
		})
	}
}
