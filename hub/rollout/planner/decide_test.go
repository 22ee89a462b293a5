package planner

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// decision is a row of the tables: a strategy and clusters, and what follows.
type decision struct {
	strategy, clusters string
	groupSize          intstr.IntOrString
	held               string
	// admitted, waiting and timedOut are names; stopped and remark are parts of sentences.
	admitted, waiting, timedOut, stopped, remark string
	// wake is the time until the next look; 0 for none.
	wake time.Duration
}

func (d decision) check(t *testing.T) {
	t.Helper()
	plan := Make(Fleet{Now: noon, Placements: []Placement{{
		Strategy: strategy(t, d.strategy), GroupSize: d.groupSize, Clusters: clusters(t, d.clusters), Held: d.held,
	}}})
	r := plan.Placements[0]
	assert.Equal(t, d.admitted, words(r.New), "admitted")
	assert.Equal(t, d.waiting, waits(r), "waiting")
	assert.Equal(t, d.timedOut, words(r.TimedOut), "timed out")
	if d.stopped == "" {
		assert.Empty(t, r.Stopped)
	} else {
		assert.Contains(t, r.Stopped, d.stopped)
	}
	if d.remark == "" {
		assert.Empty(t, r.Remarks)
	} else {
		assert.Equal(t, []string{d.remark}, r.Remarks)
	}
	assert.Empty(t, r.Problem)
	if d.wake == 0 {
		assert.Zero(t, plan.Wake)
	} else {
		assert.Equal(t, noon.Add(d.wake), plan.Wake)
	}
}

// Shows: hub/rollout-all
func TestAll(t *testing.T) {
	const within90s = `{type: All, all: {progressDeadline: 90s}}`
	tests := map[string]decision{
		"the first run admits all": {
			strategy: `{type: All}`, clusters: "a pending, b/1 pending, c/- pending", admitted: "a b c",
		},
		"a strategy without a type is All": {strategy: `{}`, clusters: "a pending, b pending", admitted: "a b"},
		"those in flight and failed within the deadline have time, the others timed out": {
			strategy: within90s, clusters: "a done 2m, b flying 1m, c flying 2m, d failed 10s, e failed 90s, f pending",
			admitted: "f", timedOut: "c e", wake: 30 * time.Second,
		},
		"a cluster that comes later is admitted": {
			strategy: within90s, clusters: "a done, aa pending, b flying 10s", admitted: "aa", wake: 80 * time.Second,
		},
		"the clusters that stay are not touched when one leaves": {
			strategy: within90s, clusters: "a done, b flying 10s", wake: 80 * time.Second,
		},
		"failures stop nothing, whatever is tolerated": {
			strategy: `{type: All, all: {maxFailures: 0, progressDeadline: 1s}}`,
			clusters: "a failed 1h, b flying 1h, c pending", admitted: "c", timedOut: "a b",
		},
		"there is no soak": {
			strategy: `{type: All, all: {minSuccessTime: 1h}}`, clusters: "a done 1s, b pending", admitted: "b",
		},
		"a cluster that may not move waits alone": {
			strategy: `{type: All}`, clusters: "a pending held, b pending", admitted: "b", waiting: "a",
		},
		"nothing is admitted while the placement is held": {
			strategy: `{type: All}`, held: "AddOnTemplate t does not exist", clusters: "a done, b pending, c flying",
			waiting: "b",
		},
	}
	for name, test := range tests {
		t.Run(name, test.check)
	}
}

// Shows: hub/rollout-progressive
func TestProgressive(t *testing.T) {
	const two = `{type: Progressive, progressive: {maxConcurrency: 2}}`
	tests := map[string]decision{
		"the first run admits as many as may move, by name": {
			strategy: two, clusters: "c pending, a/1 pending, b pending", admitted: "a b", waiting: "c",
		},
		"clusters that an earlier target left broken come before healthy ones": {
			strategy: two, clusters: "a pending, b pending, y pending broken, z pending broken", admitted: "y z", waiting: "a b",
		},
		"and the healthy ones take what is left": {
			strategy: two, clusters: "a pending, b pending, z pending broken", admitted: "a z", waiting: "b",
		},
		"a broken cluster that may not move takes no slot": {
			strategy: two, clusters: "a pending, b pending, z pending broken held", admitted: "a b", waiting: "z",
		},
		"a slot is free when a cluster succeeded": {
			strategy: two, clusters: "a done, b flying, c pending, d pending", admitted: "c", waiting: "d",
		},
		"a newcomer does not displace clusters in flight": {
			strategy: two, clusters: "a pending, b flying, c flying", waiting: "a",
		},
		"more in flight than may move admit none": {
			strategy: two, clusters: "a pending, b flying, c flying, d flying", waiting: "a",
		},
		"without maxConcurrency the size of a decision group counts": {
			strategy: `{type: Progressive}`, groupSize: intstr.FromInt32(1), clusters: "a pending, b pending",
			admitted: "a", waiting: "b",
		},
		"the size of a decision group may be a percentage": {
			strategy: `{type: Progressive}`, groupSize: intstr.FromString("50%"),
			clusters: "a pending, b pending, c pending", admitted: "a b", waiting: "c",
		},
		"maxConcurrency outweighs the size of a decision group": {
			strategy: two, groupSize: intstr.FromInt32(1), clusters: "a pending, b pending", admitted: "a b",
		},
		"without either all clusters move": {
			strategy: `{type: Progressive, progressive: {}}`, clusters: "a pending, b/1 pending", admitted: "a b",
		},
		"a percentage is rounded up": {
			strategy: `{type: Progressive, progressive: {maxConcurrency: 10%}}`, clusters: "a pending, b pending",
			admitted: "a", waiting: "b",
		},
		"a number may be a text": {
			strategy: `{type: Progressive, progressive: {maxConcurrency: "1", maxFailures: "1"}}`,
			clusters: "a failed, b pending, c pending", admitted: "b", waiting: "c",
		},
		"more than there are clusters is all": {
			strategy: `{type: Progressive, progressive: {maxConcurrency: 7}}`, clusters: "a pending, b pending",
			admitted: "a b",
		},
		"a cluster that comes later obeys the same limit": {
			strategy: `{type: Progressive, progressive: {maxConcurrency: 1}}`, clusters: "a done, b done, c pending, d pending",
			admitted: "c", waiting: "d",
		},
		"a cluster that leaves frees its slot": {
			strategy: two, clusters: "a flying, c pending, d pending", admitted: "c", waiting: "d",
		},
		"a cluster that may not move takes no slot": {
			strategy: two, clusters: "a pending held, b pending, c pending, d pending", admitted: "b c", waiting: "a d",
		},
		"clusters of a cluster set without decision groups move as well": {
			strategy: two, clusters: "a/- pending, b/3 pending", admitted: "a b",
		},
	}
	for name, test := range tests {
		t.Run(name, test.check)
	}
}

// Shows: hub/rollout-failures
func TestFailures(t *testing.T) {
	tests := map[string]decision{
		"without maxFailures one failure stops the rollout": {
			strategy: `{type: Progressive, progressive: {maxConcurrency: 2}}`, clusters: "a failed, b flying, c pending",
			waiting: "c",
			stopped: "1 of 3 clusters of the placement failed or timed out (a), and maxFailures 0 tolerates 0",
		},
		"a failure with a later name stops it as well": {
			strategy: `{type: Progressive, progressive: {maxConcurrency: 2}}`, clusters: "a pending, z failed",
			waiting: "a", stopped: "(z)",
		},
		"it goes on when the failed cluster is well": {
			strategy: `{type: Progressive, progressive: {maxConcurrency: 2}}`, clusters: "a done, b flying, c pending",
			admitted: "c",
		},
		"a failure counts at once, also before the deadline, and keeps its slot until then": {
			strategy: `{type: Progressive, progressive: {maxConcurrency: 2, maxFailures: 1, progressDeadline: 10m}}`,
			clusters: "a failed 1m, b pending, c pending", admitted: "b", waiting: "c", wake: 9 * time.Minute,
		},
		"a failure before the deadline that is not tolerated stops the rollout": {
			strategy: `{type: Progressive, progressive: {maxConcurrency: 2, progressDeadline: 10m}}`,
			clusters: "a failed 1m, b pending", waiting: "b", stopped: "(a)", wake: 9 * time.Minute,
		},
		"a tolerated failure without a deadline keeps no slot": {
			strategy: `{type: Progressive, progressive: {maxConcurrency: 1, maxFailures: 1}}`,
			clusters: "a failed, b pending, c pending", admitted: "b", waiting: "c",
		},
		"a tolerated cluster that timed out keeps no slot": {
			strategy: `{type: Progressive, progressive: {maxConcurrency: 1, maxFailures: 1, progressDeadline: 1h}}`,
			clusters: "a flying 1h, b pending, c pending", admitted: "b", waiting: "c", timedOut: "a",
		},
		"a cluster that timed out stops the rollout": {
			strategy: `{type: Progressive, progressive: {maxConcurrency: 1, progressDeadline: 1h}}`,
			clusters: "a flying 2h, b pending", waiting: "b", timedOut: "a", stopped: "(a)",
		},
		"a deadline of nothing counts every cluster in flight": {
			strategy: `{type: Progressive, progressive: {maxConcurrency: 1, maxFailures: 1, progressDeadline: 0s}}`,
			clusters: "a flying 0s, b failed 0s, c pending", waiting: "c", timedOut: "a b", stopped: "(a, b)",
		},
		"without a deadline a cluster is in flight for ever": {
			strategy: `{type: Progressive, progressive: {maxConcurrency: 50%, progressDeadline: None}}`,
			clusters: "a flying 900h, b flying 900h, c pending, d pending", waiting: "c d",
		},
		"a failed cluster whose add-on is created again gets the target again, and admits nobody": {
			strategy: `{type: Progressive, progressive: {maxConcurrency: 3}}`, clusters: "a pending again, b pending",
			admitted: "a", waiting: "b", stopped: "1 of 2 clusters of the placement failed or timed out (a)",
		},
		"it does whatever else failed": {
			strategy: `{type: Progressive, progressive: {maxConcurrency: 1}}`,
			clusters: "a failed, b pending again, c flying, d pending", admitted: "b", waiting: "d", stopped: "(a, b)",
		},
		"it counts while it has no add-on": {
			strategy: `{type: Progressive, progressive: {maxConcurrency: 3}}`, clusters: "a awaited again, b pending",
			waiting: "b", stopped: "(a)",
		},
		"where its failure is tolerated, it takes a slot before those that wait": {
			strategy: `{type: Progressive, progressive: {maxConcurrency: 1, maxFailures: 1}}`,
			clusters: "a pending, z pending again", admitted: "z", waiting: "a",
		},
		"it keeps nobody waiting while it has no add-on, and its failure is tolerated": {
			strategy: `{type: Progressive, progressive: {maxConcurrency: 1, maxFailures: 1}}`,
			clusters: "a awaited again, b pending", admitted: "b",
		},
		"where it may not move, it counts and keeps what it has": {
			strategy: `{type: Progressive, progressive: {maxConcurrency: 3}}`, clusters: "a pending again held, b pending",
			waiting: "a b", stopped: "(a)",
		},
		"all failures tolerated": {
			strategy: `{type: Progressive, progressive: {maxConcurrency: 50%, maxFailures: 100%}}`,
			clusters: "a failed, b failed, c failed, d pending", admitted: "d",
		},
		"0% is no failure": {
			strategy: `{type: Progressive, progressive: {maxConcurrency: 50%, maxFailures: 0%}}`,
			clusters: "a failed, b done, c pending", waiting: "c", stopped: "maxFailures 0% tolerates 0",
		},
		"more than there are clusters tolerates all": {
			strategy: `{type: Progressive, progressive: {maxConcurrency: 1, maxFailures: 9}}`,
			clusters: "a failed, b failed, c pending", admitted: "c",
		},
		"the percentage is of the clusters of the placement": {
			strategy: `{type: Progressive, progressive: {maxConcurrency: 1, maxFailures: 30%}}`,
			clusters: "a failed, b failed, c pending, d pending", admitted: "c", waiting: "d",
		},
		"a failure that began at an unknown time keeps no slot": {
			strategy: `{type: Progressive, progressive: {maxConcurrency: 1, maxFailures: 1, progressDeadline: 1h}}`,
			clusters: "a failed, b pending", admitted: "b",
		},
		"a cluster in flight since an unknown time does not time out": {
			strategy: `{type: Progressive, progressive: {maxConcurrency: 1, progressDeadline: 1h}}`,
			clusters: "a flying, b pending", waiting: "b",
		},
		"a new configuration begins again": {
			strategy: `{type: Progressive, progressive: {maxConcurrency: 1}}`, clusters: "a pending, b pending 1h",
			admitted: "a", waiting: "b",
		},
		"failures stop nothing when nobody waits": {
			strategy: `{type: Progressive, progressive: {maxConcurrency: 1}}`, clusters: "a failed, b done, c pending held",
			waiting: "c",
		},
	}
	for name, test := range tests {
		t.Run(name, test.check)
	}
}

// Shows: hub/rollout-soak
func TestSoak(t *testing.T) {
	const soak = `{type: Progressive, progressive: {maxConcurrency: 2, minSuccessTime: 10m, maxFailures: 100%,
		progressDeadline: 90s}}`
	tests := map[string]decision{
		"a soaking cluster keeps its slot": {
			strategy: soak, clusters: "a done 1m, b done 9m, c pending", waiting: "c", wake: time.Minute,
		},
		"a cluster that soaked frees it": {
			strategy: soak, clusters: "a done 10m, b done 9m, c pending, d pending", admitted: "c", waiting: "d",
			wake: time.Minute,
		},
		"a cluster that succeeded at an unknown time soaked long ago": {
			strategy: soak, clusters: "a done, b done, c pending", admitted: "c",
		},
		"soak, deadline and failures together": {
			strategy: soak, clusters: "a done 1m, b flying 90s, c failed 30s, d pending, e pending",
			waiting: "d e", timedOut: "b", wake: time.Minute,
		},
		"a decision group is not finished before it soaked": {
			strategy: `{type: ProgressivePerGroup, progressivePerGroup: {minSuccessTime: 10m}}`,
			clusters: "a/0 done 1h, b/0 done 1m, c/1 pending", waiting: "c", wake: 9 * time.Minute,
		},
		"a mandatory group is not finished before it soaked": {
			strategy: `{type: Progressive, progressive: {minSuccessTime: 10m, mandatoryDecisionGroups: [{groupIndex: 2}]}}`,
			clusters: "a/0 pending, b/2 done 1m", waiting: "a", wake: 9 * time.Minute,
		},
	}
	for name, test := range tests {
		t.Run(name, test.check)
	}
}

// Shows: hub/rollout-per-group
func TestProgressivePerGroup(t *testing.T) {
	const (
		plain    = `{type: ProgressivePerGroup}`
		in90s    = `{type: ProgressivePerGroup, progressivePerGroup: {progressDeadline: 90s}}`
		in90sTwo = `{type: ProgressivePerGroup, progressivePerGroup: {progressDeadline: 90s, maxFailures: 2}}`
	)
	tests := map[string]decision{
		"the first run admits the first group": {
			strategy: plain, clusters: "a/1 pending, b/0 pending, c/0 pending", admitted: "b c", waiting: "a",
		},
		"the rest of a group is admitted while others of it are in flight": {
			strategy: plain, clusters: "a/0 pending, b/0 flying, c/1 pending", admitted: "a", waiting: "c",
		},
		"the next group waits for those in flight": {
			strategy: plain, clusters: "a/0 done, b/0 flying, c/1 pending", waiting: "c",
		},
		"the next group begins when all succeeded": {
			strategy: plain, clusters: "a/0 done, b/0 done, c/1 pending, d/2 pending", admitted: "c", waiting: "d",
		},
		"indexes may have gaps": {
			strategy: plain, clusters: "a/7 pending, b/3 done, c/12 pending", admitted: "a", waiting: "c",
		},
		"clusters without a group come last": {
			strategy: plain, clusters: "a/- pending, b/9 pending", admitted: "b", waiting: "a",
		},
		"and they do come": {strategy: plain, clusters: "a/- pending, b/9 done", admitted: "a"},
		"a deadline is ahead": {
			strategy: in90s, clusters: "a/0 flying 30s, b/1 pending", waiting: "b", wake: time.Minute,
		},
		"a first group that timed out stops the rollout": {
			strategy: in90s, clusters: "a/0 flying 90s, b/0 done, c/1 pending", waiting: "c", timedOut: "a",
			stopped: "1 of 2 clusters of decision group 0 failed or timed out (a), and maxFailures 0 tolerates 0",
		},
		"a first group that timed out within what is tolerated lets one next group begin": {
			strategy: in90sTwo, clusters: "a/0 flying 2m, b/0 failed 2m, c/1 pending, d/2 pending", admitted: "c", waiting: "d",
			timedOut: "a b",
		},
		"tolerated failures of two groups do not let two groups begin": {
			strategy: in90sTwo, clusters: "a/0 flying 2m, b/0 flying 2m, c/1 flying 2m, d/1 flying 1s, e/2 pending",
			waiting: "e", timedOut: "a b c", wake: 89 * time.Second,
		},
		"the group after a tolerated one that is done lets the third begin": {
			strategy: in90sTwo, clusters: "a/0 flying 2m, b/1 done, c/2 pending", admitted: "c", timedOut: "a",
		},
		"a failed cluster without a deadline stops the rollout": {
			strategy: plain, clusters: "a/0 failed, b/0 done, c/1 pending", waiting: "c", stopped: "(a)",
		},
		"a tolerated one does not": {
			strategy: `{type: ProgressivePerGroup, progressivePerGroup: {maxFailures: 2}}`,
			clusters: "a/0 failed, b/0 done, c/1 pending", admitted: "c",
		},
		"but the others of its group are awaited": {
			strategy: `{type: ProgressivePerGroup, progressivePerGroup: {maxFailures: 2}}`,
			clusters: "a/0 failed, b/0 flying, c/1 pending", waiting: "c",
		},
		"a failed cluster is awaited until its deadline": {
			strategy: in90sTwo, clusters: "a/0 failed 30s, b/1 pending", waiting: "b", wake: time.Minute,
		},
		"the percentage is of the group": {
			strategy: `{type: ProgressivePerGroup, progressivePerGroup: {maxFailures: 30%}}`,
			clusters: "a/0 failed, b/0 failed, c/0 done, d/1 pending, e/1 pending, f/1 pending, g/1 pending",
			waiting:  "d e f g", stopped: "2 of 3 clusters of decision group 0 failed or timed out (a, b), and maxFailures 30% tolerates 1",
		},
		"more than the size of the group tolerates all of it": {
			strategy: `{type: ProgressivePerGroup, progressivePerGroup: {maxFailures: 3}}`,
			clusters: "a/0 failed, b/1 pending", admitted: "b",
		},
		"a cluster that comes to an early group is admitted before the later groups go on": {
			strategy: plain, clusters: "a/0 done, aa/0 pending, b/1 flying, c/1 pending", admitted: "aa", waiting: "c",
		},
		"a group whose last open cluster left is finished": {
			strategy: plain, clusters: "a/0 done, c/1 pending", admitted: "c",
		},
		"a cluster that may not move does not block its group": {
			strategy: plain, clusters: "a/0 done, b/0 pending held, c/1 pending", admitted: "c", waiting: "b",
		},
		"failures of a later group stop an early one as well": {
			strategy: plain, clusters: "a/0 pending, b/1 failed", waiting: "a", stopped: "decision group 1 failed or timed out (b)",
		},
		"groups of one name are groups of their own": {
			strategy: plain, clusters: "a/0=eu pending, b/1=eu pending", admitted: "a", waiting: "b",
		},
		"maxConcurrency of the Placement is no limit": {
			strategy: plain, groupSize: intstr.FromInt32(1), clusters: "a/0 pending, b/0 pending", admitted: "a b",
		},
	}
	for name, test := range tests {
		t.Run(name, test.check)
	}
}

// Shows: hub/rollout-mandatory
func TestMandatoryGroups(t *testing.T) {
	const (
		canary   = `{type: Progressive, progressive: {maxConcurrency: 1, maxFailures: 2, progressDeadline: 1h, mandatoryDecisionGroups: [{groupName: canary}]}}`
		perGroup = `{type: ProgressivePerGroup, progressivePerGroup: {maxFailures: 2, progressDeadline: 1h, mandatoryDecisionGroups: [{groupName: canary}]}}`
	)
	tests := map[string]decision{
		"a mandatory group comes first, all of it at once": {
			strategy: canary, clusters: "a/0 pending, x/1=canary pending, y/1=canary pending", admitted: "x y", waiting: "a",
		},
		"the others wait while it is in flight": {
			strategy: canary, clusters: "a/0 pending, x/1=canary done, y/1=canary flying 1m", waiting: "a",
			wake: 59 * time.Minute,
		},
		"the others begin when it succeeded": {
			strategy: canary, clusters: "a/0 pending, b/0 pending, x/1=canary done", admitted: "a", waiting: "b",
		},
		"it tolerates no failure": {
			strategy: canary, clusters: "a/0 pending, x/1=canary failed 1m, y/1=canary done", waiting: "a",
			stopped: "1 of 2 clusters of mandatory decision group 1 (canary) failed or timed out (x), and a mandatory group tolerates none",
			wake:    59 * time.Minute,
		},
		"nor one that timed out": {
			strategy: canary, clusters: "a/0 pending, x/1=canary flying 1h", waiting: "a", timedOut: "x", stopped: "(x)",
		},
		"a broken cluster waits for it like others": {
			strategy: canary, clusters: "a/0 pending broken, x/1=canary pending", admitted: "x", waiting: "a",
		},
		"a name counts for every index that has it, one after the other": {
			strategy: canary, clusters: "a/0 pending, x/2=canary pending, y/1=canary pending", admitted: "y", waiting: "a x",
		},
		"the second mandatory group begins when the first is done": {
			strategy: canary, clusters: "a/0 pending, x/2=canary pending, y/1=canary done", admitted: "x", waiting: "a",
		},
		"per group as well": {
			strategy: perGroup, clusters: "a/0 pending, b/2 pending, x/1=canary pending", admitted: "x", waiting: "a b",
		},
		"per group a mandatory failure stops it, whatever the others tolerate": {
			strategy: perGroup, clusters: "a/0 pending, b/2 pending, x/1=canary failed", waiting: "a b", stopped: "(x)",
		},
		"per group the others follow one another": {
			strategy: perGroup, clusters: "a/0 pending, b/2 pending, x/1=canary done", admitted: "a", waiting: "b",
		},
		"the name wins over the index": {
			strategy: `{type: ProgressivePerGroup, progressivePerGroup: {mandatoryDecisionGroups: [{groupName: eu, groupIndex: 2}]}}`,
			clusters: "a/0 pending, b/1=eu pending, c/2=us pending", admitted: "b", waiting: "a c",
		},
		"by index": {
			strategy: `{type: ProgressivePerGroup, progressivePerGroup: {mandatoryDecisionGroups: [{groupIndex: 2}]}}`,
			clusters: "a/0 pending, b/1=eu pending, c/2=us pending", admitted: "c", waiting: "a b",
		},
		"an entry without a name means group 0": {
			strategy: `{type: Progressive, progressive: {mandatoryDecisionGroups: [{groupIndex: 0}]}}`,
			clusters: "a/1 pending, b/0 pending", admitted: "b", waiting: "a",
		},
		"mandatory groups follow their indexes, not the list": {
			strategy: `{type: Progressive, progressive: {mandatoryDecisionGroups: [{groupIndex: 3}, {groupIndex: 1}]}}`,
			clusters: "a/1 pending, b/3 pending, c/0 pending", admitted: "a", waiting: "b c",
		},
		"a group that nothing is in is finished, and is remarked": {
			strategy: canary, clusters: "a/0 pending, b/0 pending", admitted: "a", waiting: "b",
			remark: "mandatory decision group canary has no cluster with the add-on",
		},
		"so is one by index": {
			strategy: `{type: Progressive, progressive: {mandatoryDecisionGroups: [{groupIndex: 3}]}}`, clusters: "a pending",
			admitted: "a", remark: "mandatory decision group 3 has no cluster with the add-on",
		},
		"nothing is remarked about a placement without clusters": {strategy: canary},
		"the last cluster of a mandatory group left": {
			strategy: perGroup, clusters: "a/0 pending, b/1 pending", admitted: "a", waiting: "b",
			remark: "mandatory decision group canary has no cluster with the add-on",
		},
		"percentages are of the clusters that are in no mandatory group": {
			strategy: `{type: Progressive, progressive: {maxConcurrency: 50%, mandatoryDecisionGroups: [{groupName: canary}]}}`,
			clusters: "a pending, b pending, x/1=canary done, y/1=canary done, z/1=canary done", admitted: "a", waiting: "b",
		},
		"a cluster that may not move does not block its mandatory group": {
			strategy: canary, clusters: "a pending, x/1=canary done, y/1=canary pending held", admitted: "a", waiting: "y",
		},
		"but a mandatory group of which none may move has proved nothing": {
			strategy: canary, clusters: "a pending, x/1=canary pending held, y/1=canary pending held", waiting: "a x y",
			remark: "no cluster of mandatory decision group 1 (canary) may be changed, so the others wait",
		},
		"and nobody needs to know while nobody waits": {
			strategy: canary, clusters: "a done, x/1=canary pending held", waiting: "x",
		},
		"a cluster that comes to a mandatory group later goes before the others": {
			strategy: canary, clusters: "a flying 1m, b pending, x/1=canary done, y/1=canary pending",
			admitted: "y", waiting: "b", wake: 59 * time.Minute,
		},
		"a mandatory group may have no index": {
			strategy: canary, clusters: "a pending, x/-=canary pending", admitted: "x", waiting: "a",
		},
	}
	for name, test := range tests {
		t.Run(name, test.check)
	}
}

// Shows: hub/rollout-awaited
func TestAnAddOnThatIsNotInstalledYetIsAwaited(t *testing.T) {
	const (
		canary   = `{type: Progressive, progressive: {maxConcurrency: 50%, mandatoryDecisionGroups: [{groupName: canary}]}}`
		perGroup = `{type: ProgressivePerGroup}`
	)
	tests := map[string]decision{
		"the canary comes first on the first day, too": {
			strategy: canary, clusters: "a/0 pending, b/0 pending, x/1=canary awaited", waiting: "a b",
			remark: "the add-on is not installed yet on 1 of 1 clusters of mandatory decision group 1 (canary) (x), so later groups wait",
		},
		"when it is there, it moves": {
			strategy: canary, clusters: "a/0 pending, b/0 awaited, x/1=canary pending", admitted: "x", waiting: "a",
		},
		"a canary that somebody deletes to have it created again is awaited": {
			strategy: canary, clusters: "a/0 pending, x/1=canary awaited, y/1=canary done", waiting: "a",
			remark: "the add-on is not installed yet on 1 of 2 clusters of mandatory decision group 1 (canary) (x), so later groups wait",
		},
		"those of a group that are there do not wait for the others of it": {
			strategy: perGroup, clusters: "a/0 pending, b/0 awaited, c/1 pending", admitted: "a", waiting: "c",
			remark: "the add-on is not installed yet on 1 of 2 clusters of decision group 0 (b), so later groups wait",
		},
		"a percentage counts those that are not there yet": {
			strategy: canary, clusters: "a pending, b pending, c awaited, d awaited, x/1=canary done", admitted: "a b",
		},
		"one whose former add-on does not go is awaited until the deadline": {
			strategy: `{type: ProgressivePerGroup, progressivePerGroup: {progressDeadline: 1h}}`,
			clusters: "a/0 awaited 20m, b/1 pending", waiting: "b", wake: 40 * time.Minute,
			remark: "the add-on is not installed yet on 1 of 1 clusters of decision group 0 (a), so later groups wait",
		},
		"and no longer": {
			strategy: `{type: ProgressivePerGroup, progressivePerGroup: {progressDeadline: 1h}}`,
			clusters: "a/0 awaited 1h, b/1 pending", admitted: "b",
		},
		"it is told only while somebody waits for it": {
			strategy: perGroup, clusters: "a/0 awaited, c/1 done",
		},
		"nobody waits for it with All": {
			strategy: `{type: All}`, clusters: "a/0 awaited, c/1 pending", admitted: "c",
		},
		"a failure of another group stops the rollout all the same": {
			strategy: perGroup, clusters: "a/0 failed, b/0 awaited, c/1 pending", waiting: "c",
			stopped: "1 of 2 clusters of decision group 0 failed or timed out (a)",
			remark:  "the add-on is not installed yet on 1 of 2 clusters of decision group 0 (b), so later groups wait",
		},
	}
	for name, test := range tests {
		t.Run(name, test.check)
	}
}

// Shows: policies/window-order
func TestLaterGroupsWaitForTheWindowsOfEarlierOnes(t *testing.T) {
	const (
		canary   = `{type: Progressive, progressive: {maxConcurrency: 1, mandatoryDecisionGroups: [{groupName: canary}]}}`
		perGroup = `{type: ProgressivePerGroup}`
	)
	tests := map[string]decision{
		"the canary is in no window": {
			strategy: canary, clusters: "a/0 pending, x/1=canary pending gated, y/1=canary done", waiting: "a x",
			remark: "1 of 2 clusters of mandatory decision group 1 (canary) wait for a policy or a window, so later groups wait",
		},
		"the others of its group move": {
			strategy: canary, clusters: "a/0 pending, x/1=canary pending gated, y/1=canary pending", admitted: "y", waiting: "a x",
			remark: "1 of 2 clusters of mandatory decision group 1 (canary) wait for a policy or a window, so later groups wait",
		},
		"nobody waits for the window of a later group": {
			strategy: perGroup, clusters: "a/0 pending, b/1 pending gated", admitted: "a", waiting: "b",
		},
		"its slot is for the next one": {
			strategy: canary, clusters: "a/0 pending gated, b/0 pending, x/1=canary done", admitted: "b", waiting: "a",
		},
		"it counts as no failure": {strategy: perGroup, clusters: "a/0 pending gated 900h", waiting: "a"},
	}
	for name, test := range tests {
		t.Run(name, test.check)
	}
}

// Shows: policies/depends-waves
func TestWhoWaitsForADependencyCountsAgainstWhatItsWaveTolerates(t *testing.T) {
	const (
		canary   = `{type: Progressive, progressive: {maxFailures: 100%, mandatoryDecisionGroups: [{groupName: canary}]}}`
		perGroup = `{type: ProgressivePerGroup, progressivePerGroup: {maxFailures: MAX}}`
		waitFor  = "1 of 2 clusters of decision group 0 wait for an add-on that they depend on"
	)
	with := func(failures string) string { return strings.Replace(perGroup, "MAX", failures, 1) }
	tests := map[string]decision{
		"a canary that waits releases nobody": {
			strategy: with("0"), clusters: "a/0 pending depends, b/0 done, c/1 pending", waiting: "a c",
			remark: waitFor + ", and maxFailures 0 tolerates 0, so later groups wait",
		},
		"nor does it in a mandatory group": {
			strategy: canary, clusters: "a/0 pending, x/1=canary pending depends, y/1=canary done", waiting: "a x",
			remark: "1 of 2 clusters of mandatory decision group 1 (canary) wait for an add-on that they depend on, and a " +
				"mandatory group tolerates none, so later groups wait",
		},
		"nobody waits for one that is tolerated": {
			strategy: with("1"), clusters: "a/0 pending depends, b/0 done, c/1 pending", admitted: "c", waiting: "a",
		},
		"nor for all of a group": {
			strategy: with("100%"), clusters: "a/0 pending depends, b/0 pending depends, c/1 pending", admitted: "c", waiting: "a b",
		},
		"it is tolerated together with failures": {
			strategy: with("1"), clusters: "a/0 pending depends, b/0 failed, c/1 pending", waiting: "a c",
			remark: waitFor + ", 1 failed or timed out, and maxFailures 1 tolerates 1, so later groups wait",
		},
		"the others of its group move": {
			strategy: with("0"), clusters: "a/0 pending depends, b/0 pending, c/1 pending", admitted: "b", waiting: "a c",
			remark: waitFor + ", and maxFailures 0 tolerates 0, so later groups wait",
		},
		"it counts as no failure": {strategy: with("0"), clusters: "a/0 pending depends 900h", waiting: "a"},
	}
	for name, test := range tests {
		t.Run(name, test.check)
	}
}

// Shows: hub/phase
func TestTheStatesOfAClusterAreOneTable(t *testing.T) {
	const within, without = `progressDeadline: 1h, minSuccessTime: 10m`, `minSuccessTime: 10m`
	for state, row := range map[string]struct {
		cluster, config       string
		failure, keeps, waits bool
	}{
		"awaited":                              {"a awaited", within, false, false, true},
		"awaited while its former add-on goes": {"a awaited 1m", within, false, false, true},
		"its former add-on does not go":        {"a awaited 1h", within, false, false, false},
		"likewise without a deadline":          {"a awaited 900h", without, false, false, true},
		"pending":                              {"a pending", within, false, false, true},
		"held":                                 {"a pending held", within, false, false, false},
		"in no window":                         {"a pending gated", within, false, false, true},
		"in no window for very long":           {"a pending gated 900h", within, false, false, true},
		"in no window after a failure":         {"a pending again gated", within, true, false, true},
		"awaited after a failure":              {"a awaited again", within, true, false, false},
		"pending after a failure":              {"a pending again", within, true, false, false},
		"likewise, and held":                   {"a pending again held", within, true, false, false},
		"in flight":                            {"a flying 1m", within, false, true, true},
		"in flight without a deadline":         {"a flying 900h", without, false, true, true},
		"failed before the deadline":           {"a failed 1m", within, true, true, true},
		"failed without a deadline":            {"a failed 1m", without, true, false, false},
		"in flight for longer than allowed":    {"a flying 1h", within, true, false, false},
		"failed for longer than allowed":       {"a failed 1h", within, true, false, false},
		"in flight again, and due":             {"a flying 1m due=59m", within, false, true, true},
		"in flight again for too long":         {"a flying 1m due=1h", within, true, false, false},
		"soaking again, and due":               {"a done 1m due=59m", within, false, true, true},
		"soaking again for too long":           {"a done 1m due=1h", within, true, false, false},
		"soaked at last":                       {"a done 10m due=2h", within, false, false, false},
		"in turns without a deadline":          {"a flying 1m due=900h", without, false, true, true},
		"soaking":                              {"a done 1m", within, false, true, true},
		"done":                                 {"a done 10m", within, false, false, false},
		"done at a time that nobody remembers": {"a done", within, false, false, false},
	} {
		t.Run(state, func(t *testing.T) {
			rules, problem := rulesOf(Placement{
				Strategy: strategy(t, `{type: ProgressivePerGroup, progressivePerGroup: {`+row.config+`}}`),
			})
			assert.Empty(t, problem)
			members, _ := judge(clusters(t, row.cluster), rules, noon)
			assert.Equal(t, row.failure, members[0].phase.failure(), "counts as a failure")
			assert.Equal(t, row.keeps, members[0].phase.keepsSlot(), "keeps its place")
			assert.Equal(t, row.waits, !wavesOf(rules, members)[0].finished(), "later groups wait")
		})
	}
}
