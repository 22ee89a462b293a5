package credentialdir

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func shownIn(t *testing.T, dir string) map[string]string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	shown := map[string]string{}
	for _, entry := range entries {
		if entry.Name()[:2] == ".." {
			continue
		}
		data, err := os.ReadFile(filepath.Join(dir, entry.Name()))
		require.NoError(t, err)
		shown[entry.Name()] = string(data)
	}
	return shown
}

// Shows: registration/credential-as-files
func TestTheDirectoryShowsTheSecret(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "hub-kubeconfig")
	d := &Dir{Path: dir}
	require.NoError(t, d.write(map[string][]byte{"tls.crt": []byte("c1"), "tls.key": []byte("k1"), "old": []byte("x")}))
	assert.Equal(t, map[string]string{"tls.crt": "c1", "tls.key": "k1", "old": "x"}, shownIn(t, dir))
	info, err := os.Stat(dir)
	require.NoError(t, err)
	assert.Equal(t, os.FileMode(0o700), info.Mode().Perm())
	info, err = os.Stat(filepath.Join(dir, "tls.key"))
	require.NoError(t, err)
	assert.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	before, err := os.Readlink(filepath.Join(dir, dataLink))
	require.NoError(t, err)

	require.NoError(t, d.write(map[string][]byte{"tls.crt": []byte("c1"), "tls.key": []byte("k1"), "old": []byte("x")}))
	after, err := os.Readlink(filepath.Join(dir, dataLink))
	require.NoError(t, err)
	assert.Equal(t, before, after, "what is the same is not written")

	require.NoError(t, d.write(map[string][]byte{"tls.crt": []byte("c2"), "tls.key": []byte("k2")}))
	assert.Equal(t, map[string]string{"tls.crt": "c2", "tls.key": "k2"}, shownIn(t, dir), "a key that is gone goes")
	_, err = os.Stat(filepath.Join(dir, before))
	assert.ErrorIs(t, err, os.ErrNotExist, "former files are removed")
}

func TestWhatAnotherAgentLeftInTheDirectoryIsReplaced(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "tls.crt"), []byte("by another"), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "mine"), []byte("stays"), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, newLink), []byte("of a crash"), 0o600))
	d := &Dir{Path: dir}
	require.NoError(t, d.write(map[string][]byte{"tls.crt": []byte("c1")}))
	assert.Equal(t, map[string]string{"tls.crt": "c1", "mine": "stays"}, shownIn(t, dir))
}

// A reader that opens the directory behind ..data once never sees two versions, however often it is replaced.
func TestAReaderNeverSeesTwoVersions(t *testing.T) {
	dir := t.TempDir()
	d := &Dir{Path: dir}
	version := func(n int) map[string][]byte {
		return map[string][]byte{"tls.crt": fmt.Append(nil, n), "tls.key": fmt.Append(nil, n)}
	}
	require.NoError(t, d.write(version(0)))
	done := make(chan error, 1)
	go func() {
		for n := range 200 {
			if err := d.write(version(n)); err != nil {
				done <- err
				return
			}
		}
		done <- nil
	}()
	for {
		select {
		case err := <-done:
			require.NoError(t, err)
			return
		default:
		}
		root, err := os.OpenRoot(filepath.Join(dir, dataLink))
		if err != nil {
			continue
		}
		certificate, err1 := root.ReadFile("tls.crt")
		key, err2 := root.ReadFile("tls.key")
		_ = root.Close()
		if err1 == nil && err2 == nil {
			require.Equal(t, string(certificate), string(key))
		}
	}
}

func TestALinkThatCannotBeReplacedLeavesNothingBehind(t *testing.T) {
	d := &Dir{Path: t.TempDir()}
	require.NoError(t, os.MkdirAll(filepath.Join(d.Path, newLink, "in the way"), 0o700))
	for range 3 {
		require.Error(t, d.write(map[string][]byte{"kubeconfig": []byte("secret")}))
	}
	entries, err := os.ReadDir(d.Path)
	require.NoError(t, err)
	assert.Len(t, entries, 1, "a directory in memory must not fill with credentials")
}
