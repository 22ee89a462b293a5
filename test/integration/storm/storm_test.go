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

// TestHubAndClusterAgreeAfterAStorm is the short form of what "make storm" does with two thousand edits.
func TestHubAndClusterAgreeAfterAStorm(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, fleet.Build(t.Context(), dir, map[string]string{
		"spokelet": "./cmd/spokelet", "spokelet-hub": "./cmd/spokelet-hub",
	}))
	report, err := storm.Run(t.Context(), storm.Options{Seed: 1, Edits: 160, Calm: 80, Binaries: dir, Log: os.Stderr})
	require.NoError(t, err)
	for _, row := range report.Rows() {
		t.Logf("%s: %s", row[0], row[1])
	}
	require.NoError(t, report.Check())
	assert.GreaterOrEqual(t, report.Edits, 160)
	assert.Equal(t, 3, report.Calms, "two between the edits, and the last with all works deleted")
	assert.Less(t, report.Missed, report.Edits/4, "most edits found what they edit")
	assert.Less(t, report.Doubts, report.Edits/10, "timing decided next to nothing")
}
