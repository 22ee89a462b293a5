package planner

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Shows: hub/counts
func TestCounts(t *testing.T) {
	const progressive = `{type: Progressive, progressive: {maxConcurrency: 2, maxFailures: 100%, minSuccessTime: 10m,
		progressDeadline: 1h}}`
	tests := map[string]struct {
		strategy, clusters string
		selected           int
		counts             Counts
		message            string
		status             metav1.ConditionStatus
		reason             string
	}{
		"no cluster": {
			strategy: `{}`, message: "selected clusters 0. configured addons 0/0 progressing..., 0 failed 0 timeout.",
			status: metav1.ConditionTrue, reason: "Progressing",
		},
		"no add-on yet": {
			strategy: `{}`, clusters: "a awaited, b awaited", selected: 3, counts: Counts{Total: 3, Configured: 2},
			message: "selected clusters 3. configured addons 0/2 progressing..., 0 failed 0 timeout.",
			status:  metav1.ConditionTrue, reason: "Progressing",
		},
		"some begin, some are done": {
			strategy: `{}`, clusters: "a done, b flying, c pending", selected: 3,
			counts:  Counts{Total: 3, Configured: 3, Progressing: 2, Done: 1},
			message: "selected clusters 3. configured addons 3/3 progressing..., 0 failed 0 timeout.",
			status:  metav1.ConditionTrue, reason: "Progressing",
		},
		"all are done, and others own the rest of what is selected": {
			strategy: `{}`, clusters: "a done, b done", selected: 5, counts: Counts{Total: 5, Configured: 2, Done: 2},
			message: "selected clusters 5. configured addons 2/2 completed with no errors, 0 failed 0 timeout.",
			status:  metav1.ConditionFalse, reason: "Completed",
		},
		"all are done, and one more will come": {
			strategy: `{}`, clusters: "a done, b done, c awaited", selected: 3, counts: Counts{Total: 3, Configured: 3, Done: 2},
			message: "selected clusters 3. configured addons 2/3 progressing..., 0 failed 0 timeout.",
			status:  metav1.ConditionTrue, reason: "Progressing",
		},
		"waiting clusters are in no count, soaking ones progress": {
			strategy: progressive, clusters: "a done 1m, b flying 1m, c pending, d pending held", selected: 4,
			counts:  Counts{Total: 4, Configured: 4, Progressing: 2},
			message: "selected clusters 4. configured addons 2/4 progressing..., 0 failed 0 timeout.",
			status:  metav1.ConditionTrue, reason: "Progressing",
		},
		"a failed cluster that timed out is both": {
			strategy: progressive, clusters: "a done 1h, b flying 1h, c failed 1h, d failed 1m, e pending", selected: 5,
			counts:  Counts{Total: 5, Configured: 5, Progressing: 1, Done: 1, Failed: 2, TimedOut: 2},
			message: "selected clusters 5. configured addons 2/5 progressing..., 2 failed 2 timeout.",
			status:  metav1.ConditionTrue, reason: "Progressing",
		},
		"without a deadline a failed cluster is counted at once": {
			strategy: `{}`, clusters: "a failed, b done", selected: 2,
			counts:  Counts{Total: 2, Configured: 2, Done: 1, Failed: 1},
			message: "selected clusters 2. configured addons 1/2 progressing..., 1 failed 0 timeout.",
			status:  metav1.ConditionTrue, reason: "Progressing",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			r := Make(Fleet{Now: noon, Placements: []Placement{{
				Strategy: strategy(t, test.strategy), Selected: test.selected,
				Clusters: clusters(t, test.clusters),
			}}}).Placements[0]
			assert.Equal(t, test.counts, r.Counts)
			assert.Equal(t, metav1.Condition{
				Type: "Progressing", Status: test.status, Reason: test.reason, Message: test.message,
			}, r.Condition())
		})
	}
}

// Shows: hub/rollout-stopped
func TestAStoppedRolloutIsExplained(t *testing.T) {
	r := Make(Fleet{Now: noon, Placements: []Placement{{
		Strategy: strategy(t, `{type: Progressive, progressive: {maxConcurrency: 50%, maxFailures: 20%, progressDeadline: 1h}}`),
		Clusters: clusters(t, "c5 failed 1m, c4 flying 2h, c3 failed 2h, c2 flying 3h, c1 failed 1s, c6 pending, c7 flying 1m"), Selected: 7,
	}}}).Placements[0]
	assert.Equal(t, "selected clusters 7. configured addons 1/7 progressing..., 3 failed 3 timeout. "+
		"the rollout stopped: 5 of 7 clusters of the placement failed or timed out (c1, c2, c3, and 2 more), and "+
		"maxFailures 20% tolerates 2; it goes on when they are well, or with another configuration; "+
		"2 clusters are stuck.", r.Condition("", "2 clusters are stuck").Message)
}

// Shows: hub/rollout-waiting
func TestClustersThatWaitAreExplainedAlikeWhateverTheProgress(t *testing.T) {
	const progress = "; status.installProgressions of the ClusterManagementAddOn reports the progress"
	tests := map[string]struct{ strategy, clusters, name, why string }{
		"a slot": {
			strategy: `{type: Progressive, progressive: {maxConcurrency: 25%}}`, clusters: "a flying, b pending", name: "b",
			why: "waits for its turn in the rollout: maxConcurrency is 25%, maxFailures is 0" + progress,
		},
		"a slot when the rollout stopped": {
			strategy: `{type: Progressive, progressive: {maxConcurrency: 25%}}`, clusters: "a failed, b pending", name: "b",
			why: "waits for its turn in the rollout: maxConcurrency is 25%, maxFailures is 0" + progress,
		},
		"mandatory groups": {
			strategy: `{type: Progressive, progressive: {maxFailures: "3", mandatoryDecisionGroups: [{groupIndex: 1}]}}`,
			clusters: "a/1 flying, b pending", name: "b",
			why: "waits for its turn in the rollout: maxConcurrency is 100%, maxFailures is 3, and mandatory decision groups " +
				"come first (group 1)" + progress,
		},
		"another mandatory group": {
			strategy: `{type: Progressive, progressive: {mandatoryDecisionGroups: [{groupIndex: 1}, {groupIndex: 2}]}}`,
			clusters: "a/1 flying, b/2 pending", name: "b",
			why: "waits for its turn in the rollout: mandatory decision groups (group 1, group 2) follow one another and " +
				"tolerate no failure" + progress,
		},
		"a mandatory group with a name": {
			strategy: `{type: ProgressivePerGroup, progressivePerGroup: {mandatoryDecisionGroups: [{groupName: canary}]}}`,
			clusters: "a/1=canary flying, b/2 pending", name: "b",
			why: "waits for its turn in the rollout: decision groups follow one another, and maxFailures is 0 in each, and " +
				"mandatory decision groups come first (canary)" + progress,
		},
		"another group": {
			strategy: `{type: ProgressivePerGroup, progressivePerGroup: {maxFailures: 5%}}`,
			clusters: "a/1 flying, b/2 pending", name: "b",
			why: "waits for its turn in the rollout: decision groups follow one another, and maxFailures is 5% in each" +
				progress,
		},
		"its own cause": {
			strategy: `{type: Progressive, progressive: {maxConcurrency: 1}}`, clusters: "a flying, b pending held", name: "b",
			why: "its own configuration does not exist",
		},
		"one in flight does not wait": {strategy: `{}`, clusters: "a flying", name: "a"},
		"one admitted does not wait":  {strategy: `{}`, clusters: "a pending", name: "a"},
		"one that is not there":       {strategy: `{}`, clusters: "a pending held", name: "b"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			r := Make(Fleet{Now: noon, Placements: []Placement{{
				Strategy: strategy(t, test.strategy), Clusters: clusters(t, test.clusters),
			}}}).Placements[0]
			assert.Equal(t, test.why, r.Why(test.name))
			if test.why != "" {
				assert.False(t, r.Admits(test.name))
			}
		})
	}
}

func TestWhyThePlacementIsHeld(t *testing.T) {
	r := Make(Fleet{Now: noon, Placements: []Placement{{
		Strategy: strategy(t, `{type: Progressive}`), Held: "AddOnTemplate t does not exist",
		Clusters: clusters(t, "a pending, b pending held, c failed, d flying"),
	}}}).Placements[0]
	assert.Equal(t, []Wait{{"a", "AddOnTemplate t does not exist"}, {"b", "its own configuration does not exist"}}, r.Hold)
	assert.Equal(t, "c d", words(r.Admit))
	assert.True(t, r.Admits("c"))
	assert.False(t, r.Admits("a"))
	assert.Empty(t, r.Stopped)
}

// Shows: hub/rollout-placements
func TestEachPlacementFollowsItsOwnStrategy(t *testing.T) {
	plan := Make(Fleet{Now: noon, Placements: []Placement{
		{Strategy: strategy(t, `{type: Progressive, progressive: {maxConcurrency: 1, progressDeadline: 1h}}`), Clusters: clusters(t, "a flying 1m, b pending")},
		{Strategy: strategy(t, `{type: Progressive, progressive: {maxFailures: x}}`), Clusters: clusters(t, "c pending")},
		{Strategy: strategy(t, `{type: All, all: {progressDeadline: 30m}}`), Clusters: clusters(t, "d flying 10m, e pending")},
		{},
	}})
	require.Len(t, plan.Placements, 4)
	assert.Empty(t, plan.Placements[0].New)
	assert.Empty(t, plan.Placements[1].New)
	assert.Equal(t, "e", words(plan.Placements[2].New))
	assert.Equal(t, noon.Add(20*time.Minute), plan.Wake)
	assert.Equal(t, noon.Add(59*time.Minute), plan.Placements[0].Wake)
	assert.Equal(t, Plan{Placements: []Result{}}, Make(Fleet{}))
}

func TestTheInputIsLeftAsItIs(t *testing.T) {
	given := clusters(t, "c pending, a pending, b flying")
	Make(Fleet{Now: noon, Placements: []Placement{{Clusters: given}}})
	assert.Equal(t, clusters(t, "c pending, a pending, b flying"), given)
}

// BenchmarkMake decides for 3,000 clusters in the middle of a rollout, in the order of their names and out of it.
func BenchmarkMake(b *testing.B) {
	for name, text := range map[string]string{
		"all":         `{type: All}`,
		"progressive": `{type: Progressive, progressive: {maxConcurrency: 10%, maxFailures: 5%, progressDeadline: 1h, minSuccessTime: 10m}}`,
		"per group":   `{type: ProgressivePerGroup, progressivePerGroup: {progressDeadline: 1h, mandatoryDecisionGroups: [{groupName: canary}]}}`,
	} {
		fleet := Fleet{Now: noon, Placements: []Placement{{Strategy: strategy(b, text), Clusters: crowd(3000)}}}
		b.Run(name, func(b *testing.B) { benchmark(b, fleet) })
		shuffled := fleet.Placements[0].Clusters
		rand.New(rand.NewPCG(1, 2)).Shuffle(len(shuffled), func(i, j int) {
			shuffled[i], shuffled[j] = shuffled[j], shuffled[i]
		})
		b.Run(name+", shuffled", func(b *testing.B) { benchmark(b, fleet) })
	}
}
