package planner

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// c1 failed with the target, which its group tolerates, and is to get it again in its window. Later groups wait for the
// windows of earlier ones.
func TestLaterGroupsWaitForAWindowOfAClusterThatReturns(t *testing.T) {
	s := strategy(t, `{type: ProgressivePerGroup, progressivePerGroup: {maxFailures: 1}}`)
	r := decide(Placement{Strategy: s, Clusters: clusters(t, "c1/0 pending again gated, c2/0 done, c3/1 pending")}, noon)
	assert.Empty(t, words(r.New), "c1 waits for its window, and later groups for it")
	r = decide(Placement{Strategy: s, Clusters: clusters(t, "c1/0 pending again, c2/0 done, c3/1 pending")}, noon)
	assert.Equal(t, "c1", words(r.New), "in its window (control)")
}
