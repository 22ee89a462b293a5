package soak_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/spokelet/spokelet/test/sandbox/fleet"
	"github.com/spokelet/spokelet/test/soak"
)

// TestOneRolloutAfterTheOther is the short form of the rollouts of "make soak": three of them. It samples, too, what the
// programs use.
//
// Shows: invariants/slots, invariants/rollout-ends, invariants/quiet
func TestOneRolloutAfterTheOther(t *testing.T) {
	samples := filepath.Join(t.TempDir(), "samples")
	report, err := soak.Rollouts(t.Context(), soak.RolloutsOptions{
		Least: 3, Every: 5 * time.Second, Binaries: binaries(t), Samples: samples, SampleEvery: time.Second,
		Log: os.Stderr,
	})
	require.NoError(t, err)
	for _, row := range report.Rows() {
		t.Logf("%s: %s", row[0], row[1])
	}
	require.NoError(t, report.Check())
	assert.Len(t, report.Took, 3)

	found, err := fleet.ReadSamples(samples)
	require.NoError(t, err)
	told := map[string]map[fleet.Figure]float64{}
	for _, one := range found {
		if told[one.Program] == nil {
			told[one.Program] = map[fleet.Figure]float64{}
		}
		for figure, value := range one.Figures {
			told[one.Program][figure] = max(told[one.Program][figure], value)
		}
	}
	for program, figures := range map[string][]fleet.Figure{
		"hub manager": {fleet.Memory, fleet.Goroutines, fleet.OpenFiles}, "agent of rolling2": {fleet.Memory, fleet.Goroutines, fleet.OpenFiles},
		"kube-apiserver of hub": {fleet.Memory, fleet.Watches, fleet.OpenFiles}, "etcd of rolling3": {fleet.Memory, fleet.Stored, fleet.OpenFiles},
	} {
		require.Len(t, told[program], len(figures), program)
		for _, figure := range figures {
			assert.Positive(t, told[program][figure], "%s of %s", figure, program)
		}
	}
}
