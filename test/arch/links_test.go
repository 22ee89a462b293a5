package arch

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// What a program links is more than what it imports: an import of an import counts.
//
// Shows: hub/library-without-helm
func TestNoProgramLinksHelm(t *testing.T) {
	list := exec.CommandContext(t.Context(), "go", "list", "-deps", "./cmd/spokelet", "./cmd/spokelet-hub")
	list.Dir = "../.."
	out, err := list.Output()
	require.NoError(t, err)
	linked := strings.Fields(string(out))
	assert.Contains(t, linked, module+"/hub/addon", "the list is that of the programs")
	for _, path := range linked {
		assert.False(t, strings.HasPrefix(path, "helm.sh/") || strings.HasPrefix(path, "github.com/Masterminds/"),
			"a program links %s", path)
	}
}
