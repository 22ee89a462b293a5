// Package soak_test runs the short forms of the soaks.
package soak_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/spokelet/spokelet/test/sandbox"
	"github.com/spokelet/spokelet/test/soak"
)

// TestAnAddonNeverSeesAnExpiredCertificate is the short form of what "make soak" does for ten minutes: two lives of a
// certificate, a handful of killed agents, and a hub that is away a fifth of the time.
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
	root, err := sandbox.ModuleRoot()
	require.NoError(t, err)
	dir := t.TempDir()
	for _, program := range []string{"spokelet", "spokelet-hub"} {
		cmd := exec.CommandContext(t.Context(), "go", "build", "-o", filepath.Join(dir, program), "./cmd/"+program)
		cmd.Dir = root
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s", out)
	}
	return dir
}
