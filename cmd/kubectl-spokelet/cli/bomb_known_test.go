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

// blanks is a stream of spaces, which JSON takes anywhere.
type blanks struct{}

func (blanks) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = ' '
	}
	return len(p), nil
}

// A file of less than a megabyte must not take gigabytes of memory, also where a member has a name that bundles have: the
// bound of 4 GiB for what is unpacked is more than the memory of the person who opens it.
func TestAFileOfLessThanAMegabyteTakesNoGigabytes(t *testing.T) {
	const size = 192 << 20
	file := filepath.Join(t.TempDir(), "x.tgz")
	to, err := os.Create(file)
	require.NoError(t, err)
	packed := gzip.NewWriter(to)
	archive := tar.NewWriter(packed)
	put := func(name string, size int64, content io.Reader) {
		require.NoError(t, archive.WriteHeader(&tar.Header{Name: name, Mode: 0o600, Size: size}))
		_, err := io.CopyN(archive, content, size)
		require.NoError(t, err)
	}
	const head = `{"format":1,"hub":"h","version":"v","taken":"2026-11-29T12:00:00Z"}`
	put("bundle.json", int64(len(head)), strings.NewReader(head))
	put("managedclusters.cluster.open-cluster-management.io.json", size, blanks{})
	require.NoError(t, archive.Close())
	require.NoError(t, packed.Close())
	require.NoError(t, to.Close())
	info, err := os.Stat(file)
	require.NoError(t, err)
	require.Less(t, info.Size(), int64(1<<20))
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	got := run(t, "check", "--from", file)
	runtime.ReadMemStats(&after)
	assert.NotEqual(t, statusWell, got.status)
	assert.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(size/2), "%s%s", got.out, got.errs)
}
