// Package soak_test runs the short forms of the soaks.
package soak_test

import (
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/spokelet/spokelet/test/sandbox/fleet"
	"github.com/spokelet/spokelet/test/soak"
)

// TestAnAddonNeverSeesAnExpiredCertificate is the short form of what "make soak" does for ten minutes: two lives of a
// certificate, a handful of killed agents, and a hub that is away a fifth of the time.
//
// Shows: invariants/never-expired
func TestAnAddonNeverSeesAnExpiredCertificate(t *testing.T) {
	report, err := soak.Rotation(t.Context(), soak.RotationOptions{
		Duration: 110 * time.Second, Seed: 1, Binaries: binaries(t), Log: os.Stderr,
	})
	require.NoError(t, err)
	for _, row := range report.Rows() {
		t.Logf("%s: %s", row[0], row[1])
	}
	require.NoError(t, report.Check())
	assert.GreaterOrEqual(t, report.Outages, 3)
	assert.GreaterOrEqual(t, report.Kills, 3)
	assert.Positive(t, report.ReadsInOutage, "the hub was really away")
	assert.Greater(t, report.Reads, 4*report.ReadsInOutage/2, "and most of the time it was not")
}

func binaries(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	require.NoError(t, fleet.Build(t.Context(), dir, map[string]string{
		"spokelet": "./cmd/spokelet", "spokelet-hub": "./cmd/spokelet-hub",
	}))
	return dir
}
