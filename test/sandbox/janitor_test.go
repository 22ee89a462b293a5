package sandbox_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/spokelet/spokelet/test/sandbox"
)

func TestAJanitorRemovesItsDirectoryWhenItIsTold(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "with 'odd' $name")
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "below"), 0o700))
	janitor, err := sandbox.StartJanitor(dir)
	require.NoError(t, err)
	assert.DirExists(t, dir, "not before it is told")
	require.NoError(t, janitor.Finish())
	assert.NoDirExists(t, dir)
}
