package cli

import (
	"compress/gzip"
	"io"
	"os"
	"testing"

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
