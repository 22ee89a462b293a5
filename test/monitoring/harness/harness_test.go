package harness_test

import (
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/utils/clock"

	"github.com/spokelet/spokelet/test/monitoring/harness"
)

func TestTheMetricsOfAFleetAreScrapedStoredAndAsked(t *testing.T) {
	binaries, dir := t.TempDir(), t.TempDir()
	require.NoError(t, harness.Build(t.Context(), binaries))
	f, err := harness.Start(t.Context(), harness.Options{Clusters: []string{"cluster1"}, Binaries: binaries, Log: os.Stderr})
	require.NoError(t, err)
	defer func() { require.NoError(t, f.Close()) }()
	store, err := harness.Open(dir)
	require.NoError(t, err)
	m, err := harness.NewMonitor(t.Context(), store, clock.RealClock{}, f.Targets)
	require.NoError(t, err)
	before := m.Now()
	require.NoError(t, m.Run(t.Context(), 10*time.Minute))
	found, err := store.Instant(t.Context(), `count by (job) (up == 1)`, m.Now())
	require.NoError(t, err)
	require.Len(t, found, 2)
	require.NoError(t, store.Close())

	again, err := harness.Open(dir)
	require.NoError(t, err)
	defer func() { require.NoError(t, again.Close()) }()
	matrix, err := again.Range(t.Context(), `spokelet_fleet_clusters{code="well"}`, before, m.Now(), harness.ScrapeEvery)
	require.NoError(t, err)
	require.Len(t, matrix, 1)
	require.Len(t, matrix[0].Floats, 20, "one for each step")
	_, last := again.Times()
	require.Equal(t, m.Now().UnixMilli(), last.UnixMilli())
}
