package cli

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A bundle is of another hub, and its maker chooses what is in it. A command that writes would write to the hub of the
// kubeconfig of the person who looks at the bundle, where a cluster of that name may have been denied.
func TestNoNextCommandOfABundleWritesToAHub(t *testing.T) {
	file := filepath.Join(t.TempDir(), "x.tgz")
	require.Equal(t, statusWell, plays(t, shop(), "bundle", "-f", file).status)
	for _, args := range [][]string{{"check"}, {"why", "cluster", "store-201"}} {
		got := run(t, append(args, "--from", file)...)
		require.Contains(t, got.out, "SPK020")
		for line := range strings.Lines(got.out) {
			if strings.Contains(line, "kubectl spokelet approve") {
				assert.Contains(t, line, "next, on the hub of the bundle: ", args)
			}
		}
	}
}
