// Package storm_test runs the short form of the storm.
package storm_test

import (
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/spokelet/spokelet/test/sandbox/fleet"
	"github.com/spokelet/spokelet/test/storm"
)

// agree plays a short storm, and returns its report.
func agree(t *testing.T, options storm.Options) storm.Report {
	t.Helper()
	options.Binaries, options.Log = t.TempDir(), os.Stderr
	require.NoError(t, fleet.Build(t.Context(), options.Binaries, map[string]string{
		"spokelet": "./cmd/spokelet", "spokelet-hub": "./cmd/spokelet-hub",
	}))
	report, err := storm.Run(t.Context(), options)
	require.NoError(t, err)
	for _, row := range report.Rows() {
		t.Logf("%s: %s", row[0], row[1])
	}
	require.NoError(t, report.Check())
	assert.GreaterOrEqual(t, report.Edits, options.Edits)
	return report
}

// TestHubAndClusterAgreeAfterAStorm is the short form of what "make storm" does with two thousand edits.
//
// Shows: invariants/works-agree, invariants/nothing-taken, invariants/nothing-left, invariants/typing-error
// Shows: invariants/listed-until-gone, invariants/by-hand
func TestHubAndClusterAgreeAfterAStorm(t *testing.T) {
	report := agree(t, storm.Options{Seed: 1, Edits: 160, Calm: 80})
	assert.Equal(t, 3, report.Calms, "two between the edits, and the last with all works deleted")
	assert.Less(t, report.Missed, report.Edits/4, "most edits found what they edit")
	assert.Less(t, report.Doubts, report.Edits/10, "timing decided next to nothing")
}

// TestHubAndClusterAgreeWhenAPIServersLied is the short form of "make storm" with the flag -lies.
//
// Shows: invariants/works-agree, invariants/nothing-taken, invariants/nothing-left
func TestHubAndClusterAgreeWhenAPIServersLied(t *testing.T) {
	report := agree(t, storm.Options{Seed: 3, Edits: 40, Calm: 20, Lies: true})
	assert.Greater(t, len(report.Lies), 4, "%v", report.Lies)
}
