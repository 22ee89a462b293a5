// Package fleet_test tests whole flows: a hub, managed clusters, our programs as processes with the RBAC that we ship.
package fleet_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/spokelet/spokelet/test/sandbox"
	"github.com/spokelet/spokelet/test/sandbox/fleet"
)

// patience is how long a test waits for what must happen; on an idle machine it takes a second or two.
const patience = 90 * time.Second

// shared holds what all tests of this package use: programs built once, and one fleet of a hub and two clusters.
var shared struct {
	binaries string
	fleet    *fleet.Fleet
}

func TestMain(m *testing.M) {
	os.Exit(sandbox.Main(m, func(ctx context.Context) (func(), error) {
		dir, err := os.MkdirTemp("", "spokelet-binaries-")
		if err != nil {
			return nil, err
		}
		stop := func() { report(os.RemoveAll(dir)) }
		if err := build(ctx, dir); err != nil {
			return stop, err
		}
		shared.binaries = dir
		f, err := fleet.New(ctx, fleet.Options{
			Clusters: []string{"cluster1", "cluster2"}, Binaries: dir, Audit: true, Log: os.Stderr,
		})
		if err != nil {
			return stop, err
		}
		shared.fleet = f
		return func() { report(f.Close()); stop() }, startFleet(ctx, f)
	}))
}

// report logs a failure after the tests, when no test is left to fail.
func report(err error) {
	if err != nil {
		fmt.Fprintf(os.Stderr, "cleaning up: %v\n", err)
	}
}

// build builds our programs into dir.
func build(ctx context.Context, dir string) error {
	return fleet.Build(ctx, dir, map[string]string{
		"spokelet": "./cmd/spokelet", "spokelet-hub": "./cmd/spokelet-hub", "hello-agent": "./test/hello",
	})
}

// startFleet brings hub and agents up and accepts the clusters.
func startFleet(ctx context.Context, f *fleet.Fleet) error {
	ctx, cancel := context.WithTimeout(ctx, 2*patience)
	defer cancel()
	if err := f.InstallHub(ctx, nil); err != nil {
		return err
	}
	for _, cluster := range f.Clusters() {
		if err := f.StartAgent(ctx, cluster); err != nil {
			return err
		}
	}
	for _, cluster := range f.Clusters() {
		if err := f.Accept(ctx, cluster.Name, map[string]string{"environment": "demo"}); err != nil {
			return err
		}
		if err := f.WaitAvailable(ctx, cluster, nil); err != nil {
			return err
		}
	}
	return nil
}

// eventually waits until holds returns nil and fails with the last reason otherwise.
func eventually(t *testing.T, what string, holds func(ctx context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithTimeoutCause(t.Context(), patience, fmt.Errorf("gave up after %s", patience))
	defer cancel()
	require.NoError(t, fleet.Wait(ctx, what, nil, holds))
}

// testdata reads a file of this package's testdata.
func testdata(t *testing.T, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", name))
	require.NoError(t, err)
	return data
}
