package agent

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestPagesOfFilesAreGivenBack(t *testing.T) {
	const size = 32 << 20
	content := bytes.Repeat([]byte("page"), size/4)
	path := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(path, content, 0o600))
	file, err := os.Open(path)
	require.NoError(t, err)
	defer func() { _ = file.Close() }()
	mapped, err := syscall.Mmap(int(file.Fd()), 0, size, syscall.PROT_READ, syscall.MAP_PRIVATE)
	require.NoError(t, err)
	defer func() { assert.NoError(t, syscall.Munmap(mapped)) }()
	require.True(t, bytes.Equal(content, mapped), "reading makes all of it resident")
	before := residentFiles(t)

	require.NoError(t, giveBack())

	assert.Less(t, residentFiles(t), before-size*3/4)
	assert.True(t, bytes.Equal(content, mapped), "it comes back as it was")
}

// residentFiles is how much of mapped files is resident, in bytes.
func residentFiles(t *testing.T) int {
	t.Helper()
	status, err := os.ReadFile("/proc/self/status")
	require.NoError(t, err)
	_, rest, found := strings.Cut(string(status), "RssFile:")
	require.True(t, found)
	kilobytes, err := strconv.Atoi(strings.Fields(rest)[0])
	require.NoError(t, err)
	return kilobytes << 10
}
