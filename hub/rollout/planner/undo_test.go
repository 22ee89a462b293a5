package planner

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestNoFailureStopsTheReturnToWhatClustersHadBefore(t *testing.T) {
	const byGroup = `{type: ProgressivePerGroup, progressivePerGroup: {mandatoryDecisionGroups: [{groupName: canary}]}}`
	given := Placement{
		Strategy: strategy(t, `{type: Progressive, progressive: {maxConcurrency: 1, maxFailures: 0}}`),
		Clusters: clusters(t, "a failed 1m, b pending, c pending broken"),
	}
	result := decide(given, noon)
	assert.Empty(t, result.New)
	assert.Equal(t, []string{"a"}, result.Failing)
	assert.Equal(t, "1 of 3 clusters of the placement failed or timed out (a)", result.FailingOf)
	assert.Equal(t, 0, result.Tolerated)

	given.Undoes = true
	result = decide(given, noon)
	assert.Equal(t, []string{"c"}, result.New, "one after the other, and who is broken comes first")
	assert.Empty(t, result.Failing)
	assert.Empty(t, result.Stopped)

	given = Placement{Strategy: strategy(t, byGroup), Clusters: clusters(t, "a/0=canary failed 1m, b/1 pending"), Undoes: true}
	assert.Equal(t, []string{"b"}, decide(given, noon).New, "also of a mandatory group nobody has to be well")
	given.Undoes = false
	assert.Empty(t, decide(given, noon).New)
}

func TestARolloutHasFailedAlsoWhereNobodyWaits(t *testing.T) {
	result := decide(Placement{
		Strategy: strategy(t, `{type: Progressive, progressive: {maxFailures: 1}}`),
		Clusters: clusters(t, "a failed 1m, b failed 1m, c done 1h"),
	}, noon)
	assert.Empty(t, result.Stopped)
	assert.Equal(t, []string{"a", "b"}, result.Failing)
	assert.Equal(t, 1, result.Tolerated)
}
