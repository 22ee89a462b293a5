package crash_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/spokelet/spokelet/manifests"
	"github.com/spokelet/spokelet/test/sandbox"
	"github.com/spokelet/spokelet/test/sandbox/fleet"
)

// patience is how long a test waits for what must happen; on an idle machine it takes a second or two.
const patience = 90 * time.Second

// shared is one fleet of a hub, with the hub manager as a program, and one cluster that many agents call theirs.
var shared *fleet.Fleet

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
		f, err := fleet.New(ctx, fleet.Options{Clusters: []string{"spoke"}, Binaries: dir, Log: os.Stderr})
		if err != nil {
			return stop, err
		}
		shared = f
		stop = func() { report(f.Close()); report(os.RemoveAll(dir)) }
		if err := f.InstallHub(ctx, nil); err != nil {
			return stop, err
		}
		return stop, f.Cluster("spoke").ControlPlane.Apply(ctx, manifests.SpokeCRDs()...)
	}))
}

func report(err error) {
	if err != nil {
		fmt.Fprintf(os.Stderr, "cleaning up: %v\n", err)
	}
}

func build(ctx context.Context, dir string) error {
	if err := fleet.Build(ctx, dir, map[string]string{"spokelet-hub": "./cmd/spokelet-hub"}); err != nil {
		return err
	}
	// The fleet asks for all its programs, and the agent runs inside the test.
	return os.WriteFile(filepath.Join(dir, "spokelet"), nil, 0o700)
}

// eventually waits until holds returns nil and fails with the last reason otherwise.
func eventually(t *testing.T, what string, holds func(ctx context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithTimeoutCause(t.Context(), patience, fmt.Errorf("gave up after %s", patience))
	defer cancel()
	require.NoError(t, fleet.Wait(ctx, what, nil, holds))
}
