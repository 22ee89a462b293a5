package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"
)

// manifest is what krew reads.
type manifest struct {
	Metadata struct{ Name string }
	Spec     struct {
		Version          string
		ShortDescription string
		Platforms        []struct {
			Selector struct{ MatchLabels map[string]string }
			URI      string
			SHA256   string
			Bin      string
			Files    []struct{ From, To string }
		}
	}
}

// The plugin is installed from its manifest as krew does: the archive of the platform is checked, unpacked, and run.
func TestAPersonInstallsThePluginFromItsManifest(t *testing.T) {
	folder := t.TempDir()
	here := platform{runtime.GOOS, runtime.GOARCH}
	o := options{
		source: "..", license: "../../../LICENSE", to: folder, version: "v1.2.3", url: "https://example.com/releases/v1.2.3/",
		link: "-s -w -X github.com/spokelet/spokelet/internal/version.version=v1.2.3", platforms: []platform{here},
	}
	require.NoError(t, build(t.Context(), o))
	raw, err := os.ReadFile(filepath.Join(folder, "spokelet.yaml"))
	require.NoError(t, err)
	var m manifest
	require.NoError(t, yaml.Unmarshal(raw, &m))
	assert.Equal(t, "spokelet", m.Metadata.Name)
	assert.Equal(t, "v1.2.3", m.Spec.Version)
	require.Len(t, m.Spec.Platforms, 1)
	of := m.Spec.Platforms[0]
	assert.Equal(t, map[string]string{"os": runtime.GOOS, "arch": runtime.GOARCH}, of.Selector.MatchLabels)
	name, below := strings.CutPrefix(of.URI, "https://example.com/releases/v1.2.3/")
	require.True(t, below, of.URI)
	packed, err := os.ReadFile(filepath.Join(folder, name))
	require.NoError(t, err)
	sum := sha256.Sum256(packed)
	assert.Equal(t, hex.EncodeToString(sum[:]), of.SHA256)
	sums, err := os.ReadFile(filepath.Join(folder, "checksums.txt"))
	require.NoError(t, err)
	assert.Equal(t, of.SHA256+"  "+name+"\n", string(sums))

	installed := unpack(t, packed)
	for _, file := range of.Files {
		assert.FileExists(t, filepath.Join(installed, file.From))
	}
	out, err := exec.CommandContext(t.Context(), filepath.Join(installed, of.Bin), "version").CombinedOutput()
	require.NoError(t, err, string(out))
	assert.Equal(t, "kubectl spokelet v1.2.3\n", string(out))
}

// unpack unpacks an archive.
func unpack(t *testing.T, packed []byte) string {
	t.Helper()
	folder := t.TempDir()
	unzipped, err := gzip.NewReader(bytes.NewReader(packed))
	require.NoError(t, err)
	for archive := tar.NewReader(unzipped); ; {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return folder
		}
		require.NoError(t, err)
		content, err := io.ReadAll(archive)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(filepath.Join(folder, filepath.Base(header.Name)), content, os.FileMode(header.Mode)))
	}
}

func TestTheSameContentIsTheSameArchive(t *testing.T) {
	for _, p := range platforms() {
		one, err := p.pack([]byte("program"), []byte("license"))
		require.NoError(t, err)
		two, err := p.pack([]byte("program"), []byte("license"))
		require.NoError(t, err)
		assert.Equal(t, one, two, p.archive())
	}
	assert.Len(t, platforms(), 5)
}
