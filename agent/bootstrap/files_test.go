package bootstrap

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/utils/clock"
)

func TestAFileIsWatchedBeforeItsDirectoryExists(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a", "b", "kubeconfig")
	changed := make(chan struct{}, 100)
	w := &FileWatch{Clock: clock.RealClock{}, Paths: func() []string { return []string{path} }, Changed: func() {
		changed <- struct{}{}
	}}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- w.Start(ctx) }()
	awaitContent := func(want string) {
		t.Helper()
		limit := time.After(10 * time.Second)
		for {
			select {
			case <-changed:
			case <-limit:
				require.Fail(t, "no event", "with content %q", want)
			}
			if got, err := os.ReadFile(path); err == nil && string(got) == want {
				return
			}
		}
	}
	<-changed
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
	require.NoError(t, os.WriteFile(path, []byte("1"), 0o600))
	awaitContent("1")
	fresh := filepath.Join(filepath.Dir(path), "fresh")
	require.NoError(t, os.WriteFile(fresh, []byte("2"), 0o600))
	require.NoError(t, os.Rename(fresh, path))
	awaitContent("2")
	elsewhere := filepath.Join(t.TempDir(), "elsewhere")
	require.NoError(t, os.WriteFile(elsewhere, []byte("3"), 0o600))
	require.NoError(t, os.Remove(path))
	require.NoError(t, os.Symlink(elsewhere, path))
	awaitContent("3")
	for len(changed) > 0 {
		<-changed
	}
	require.NoError(t, os.WriteFile(elsewhere, []byte("4"), 0o600))
	awaitContent("4")
	cancel()
	require.NoError(t, <-ended)
}

func TestFilesCanBeReadNowAndThen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		read := 0
		w := &FileWatch{
			Clock: clock.RealClock{}, Poll: true, Paths: func() []string { return []string{"kubeconfig"} },
			Changed: func() { read++ },
		}
		ctx, cancel := context.WithTimeout(t.Context(), 3*pollPause-time.Second)
		defer cancel()
		require.NoError(t, w.Start(ctx))
		require.Equal(t, 3, read, "at the start, and after each pause")
	})
}
