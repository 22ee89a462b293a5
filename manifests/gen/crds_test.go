package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestShippedDefinitionsAreThoseOfTheAPIModule(t *testing.T) {
	from, err := moduleDir(t.Context())
	require.NoError(t, err)
	fresh := filepath.Join(t.TempDir(), "crds")
	require.NoError(t, write(from, fresh))
	shipped := files(t, filepath.Join("..", "crds"))
	assert.Len(t, shipped, len(sources()))
	for name, content := range files(t, fresh) {
		assert.Equal(t, content, shipped[name], "%s is out of date: run go run ./manifests/gen", name)
	}
}

func TestAddOnTemplatesGetASecondVersion(t *testing.T) {
	const alpha = "spec:\n  versions:\n  - columns: []\n    name: v1alpha1\n    storage: true\n    subresources: {}\nstatus:\n  x: y\n"
	got, err := withBeta([]byte(alpha))
	require.NoError(t, err)
	assert.Equal(t, "spec:\n  versions:\n"+
		"  - columns: []\n    name: v1alpha1\n    storage: true\n    subresources: {}\n"+
		"  - columns: []\n    name: v1beta1\n    storage: false\n    subresources: {}\nstatus:\n  x: y\n", string(got))
	_, err = withBeta(got)
	require.ErrorContains(t, err, "does not have one version", "the API module has v1beta1 by itself")
	_, err = withBeta([]byte("spec: {}\n"))
	require.ErrorContains(t, err, "does not have one version")
}

func TestWriteSaysWhatIsMissing(t *testing.T) {
	err := write(t.TempDir(), filepath.Join(t.TempDir(), "crds"))
	assert.ErrorContains(t, err, "reading the definition for ")
}

// files reads every file below a folder.
func files(t *testing.T, dir string) map[string]string {
	t.Helper()
	found := map[string]string{}
	require.NoError(t, filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		raw, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		name, err := filepath.Rel(dir, path)
		found[filepath.ToSlash(name)] = string(raw)
		return err
	}))
	return found
}
