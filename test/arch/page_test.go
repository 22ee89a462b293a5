package arch

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Who looks for the reconciler of something begins on that page.
func TestEachPackageWithAReconcilerStandsOnThePageOfTheArchitecture(t *testing.T) {
	page, err := os.ReadFile("../../docs/architecture.md")
	require.NoError(t, err)
	found := 0
	for _, root := range []string{"agent", "hub"} {
		files, err := filepath.Glob(filepath.Join("../..", root, "*", "*.go"))
		require.NoError(t, err)
		for _, file := range files {
			content, err := os.ReadFile(file)
			require.NoError(t, err)
			test := strings.HasSuffix(file, "_test.go")
			if test || !strings.Contains(string(content), ") SetupWithManager(mgr ctrl.Manager) error {") {
				continue
			}
			found++
			path := root + "/" + filepath.Base(filepath.Dir(file))
			if !strings.Contains(string(page), "`"+path+"`") {
				t.Errorf("docs/architecture.md, table of packages: add %s and what it owns", path)
			}
		}
	}
	require.NotZero(t, found)
}
