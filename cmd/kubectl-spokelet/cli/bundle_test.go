package cli

import (
	"archive/tar"
	"compress/gzip"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// unpack returns all that is in a bundle.
func unpack(t *testing.T, file string) string {
	t.Helper()
	packed, err := os.Open(file)
	require.NoError(t, err)
	defer func() { require.NoError(t, packed.Close()) }()
	unpacked, err := gzip.NewReader(packed)
	require.NoError(t, err)
	content, err := io.ReadAll(unpacked)
	require.NoError(t, err)
	return string(content)
}

// packed returns the file of an archive with some members.
func packed(t *testing.T, members map[string]io.Reader) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "x.tgz")
	to, err := os.Create(file)
	require.NoError(t, err)
	zipped := gzip.NewWriter(to)
	archive := tar.NewWriter(zipped)
	for name, content := range members {
		header := &tar.Header{Name: name, Mode: 0o600}
		switch from := content.(type) {
		case *strings.Reader:
			header.Size = from.Size()
		case *io.LimitedReader:
			header.Size = from.N
		}
		require.NoError(t, archive.WriteHeader(header))
		_, err := io.Copy(archive, content)
		require.NoError(t, err)
	}
	require.NoError(t, archive.Close())
	require.NoError(t, zipped.Close())
	require.NoError(t, to.Close())
	return file
}

// Other programs than kubectl keep whole objects in annotations, too.
func TestABundleHasNoFormerConfigurationOfOtherPrograms(t *testing.T) {
	for _, key := range []string{"kapp.k14s.io/original", "objectset.rio.cattle.io/applied", "banzaicloud.com/last-applied"} {
		t.Run(key, func(t *testing.T) {
			h := shop()
			part(h.lists[pathWorks][0], "metadata")["annotations"] = map[string]any{
				key: `{"spec":{"workload":{"manifests":[{"kind":"Secret","stringData":{"password":"hunter9"}}]}}}`,
			}
			bundle := filepath.Join(t.TempDir(), "x.tgz")
			require.Equal(t, statusWell, plays(t, h, "bundle", "-f", bundle).status)
			assert.NotContains(t, unpack(t, bundle), "hunter9")
		})
	}
}

// A bundle has no certificates, and an expert sees there what the person on call sees.
func TestARequestThatIsSignedIsSignedInABundle(t *testing.T) {
	h := shop()
	h.lists[pathRequests][0]["status"] = map[string]any{
		"certificate": "Y2VydGlmaWNhdGU=", "conditions": []any{map[string]any{"type": "Approved", "status": "True"}},
	}
	require.Equal(t, statusWell, plays(t, h, "why", "csr", "store-201-abcde").status)
	bundle := filepath.Join(t.TempDir(), "x.tgz")
	require.Equal(t, statusWell, plays(t, h, "bundle", "-f", bundle).status)
	got := run(t, "why", "csr", "store-201-abcde", "--from", bundle)
	assert.Equal(t, statusWell, got.status, got.out)
	assert.NotContains(t, got.out, "SPK027")
}

// A bundle comes from another person: what its head says must not reach the terminal as it is.
func TestTheHeadOfABundleDoesNoHarm(t *testing.T) {
	file := packed(t, map[string]io.Reader{
		"bundle.json": strings.NewReader(`{"format": 1, "hub": "h\u001b]0;owned\u0007\n0 problems\u001b[8m", ` +
			`"version": "v1\u001b[31m", "taken": "2026-11-29T12:00:00Z"}`),
		"managedclusters.cluster.open-cluster-management.io.json":    strings.NewReader(`{"items": []}`),
		"managedclusteraddons.addon.open-cluster-management.io.json": strings.NewReader(`{"items": []}`),
	})
	got := run(t, "check", "--from", file)
	assert.Equal(t, statusWell, got.status, got.errs)
	assert.NotContains(t, got.out, "\x1b")
	assert.NotContains(t, got.out, "\a")
}

// zeros is a stream of zeros.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

// A file of half a megabyte must not take gigabytes of memory: a member that no bundle has is not kept.
func TestAMemberThatNoBundleHasTakesNoMemory(t *testing.T) {
	const size = 64 << 20
	file := packed(t, map[string]io.Reader{"../../junk": io.LimitReader(zeros{}, size)})
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	got := run(t, "check", "--from", file)
	runtime.ReadMemStats(&after)
	assert.Equal(t, statusBlind, got.status)
	assert.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(size/4))
}

// What a person could not read when a bundle was taken is not mended by that.
func TestWhatABundleLacksIsNotGone(t *testing.T) {
	dir := t.TempDir()
	before, after := filepath.Join(dir, "a.tgz"), filepath.Join(dir, "b.tgz")
	h := shop()
	require.Equal(t, statusWell, plays(t, h, "bundle", "-f", before).status)
	h.forbidden = map[string]bool{"managedclusteraddons": true}
	require.Equal(t, statusWell, plays(t, h, "bundle", "-f", after).status)
	got := run(t, "check", "--compare", before, after)
	assert.NotContains(t, got.out, "gone: 1 problems", "nobody could look")
	assert.Contains(t, got.out+got.errs, "managedclusteraddons", "the gap is named")
	assert.Contains(t, strings.Join(strings.Fields(strings.ReplaceAll(got.out, "│", "")), " "), "of "+after, "and the bundle that lacks it")
	assert.Equal(t, statusBlind, got.status, "nobody knows whether anything changed")
	got = run(t, "check", "--compare", after, before)
	assert.NotContains(t, got.out, "addon/logs", "nor whether it is new")
	assert.Equal(t, statusBlind, got.status)
}
