// Package benchmark runs the benchmark of the hub manager in miniature, so that it works when it is needed. Times are
// not judged.
package benchmark

import (
	"context"
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/spokelet/spokelet/test/bench/manager"
	"github.com/spokelet/spokelet/test/bench/measure"
	"github.com/spokelet/spokelet/test/bench/policies"
	"github.com/spokelet/spokelet/test/sandbox"
	"github.com/spokelet/spokelet/test/sandbox/fleet"
)

// binaries is the directory with our programs.
var binaries string

func TestMain(m *testing.M) {
	os.Exit(sandbox.Main(m, func(ctx context.Context) (func(), error) {
		dir, err := os.MkdirTemp("", "spokelet-binaries-")
		if err != nil {
			return nil, err
		}
		binaries = dir
		return func() { _ = os.RemoveAll(dir) }, fleet.Build(ctx, dir, map[string]string{
			"spokelet": "./cmd/spokelet", "spokelet-hub": "./cmd/spokelet-hub",
		})
	}))
}

func TestTheBenchmarkOfTheHubManagerMeasures(t *testing.T) {
	const wave = 2
	figures, err := manager.Run(t.Context(), manager.Options{
		Size: manager.Size{Clusters: 6, AddOns: 1}, Changes: 2, Rounds: 1, Wave: wave, Restart: true, Binaries: binaries,
	}, t.Output())
	require.NoError(t, err)
	found := map[string]measure.Figure{}
	for _, f := range figures {
		found[f.Name] = f
	}
	for _, name := range []string{
		"install", "install, requests per add-on", "upgrade", "one change on one cluster to Completed, p50",
		"start of the hub manager until it is quiet", "uninstall", "install beside that",
		"one add-on on one cluster, creation to credential, p50",
	} {
		assert.NotEmpty(t, found[name].Value, name)
	}
	inFlight := found["upgrade in waves of 2, 200ms each, clusters in flight at once"]
	assert.NotEmpty(t, inFlight.Value)
	assert.True(t, inFlight.Held, "%s clusters had new work at once, and %d are allowed", inFlight.Value, wave)
}

func TestTheBenchmarkOfThePoliciesMeasures(t *testing.T) {
	figures, err := policies.Run(t.Context(), policies.Options{Rounds: 1, Writes: 2}, t.Output())
	require.NoError(t, err)
	assert.NotEmpty(t, figures)
	for _, figure := range figures {
		assert.NotEmpty(t, figure.Value, figure.Name)
	}
}
