package reference_test

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/spokelet/spokelet/test/reference"
)

// place is a path below the module root, perhaps with a star.
var place = regexp.MustCompile(`^(agent|cmd|csr|hub|internal|lease|manifests|test)/[a-z0-9_/*.-]+$`)

// TestThePlacesOfTheArchitectureExist looks for every path that docs/architecture.md and CONTRIBUTING.md name.
func TestThePlacesOfTheArchitectureExist(t *testing.T) {
	documents, err := reference.Files(root(t), ".md")
	require.NoError(t, err)
	for _, document := range []string{"docs/architecture.md", "CONTRIBUTING.md"} {
		for _, name := range reference.Names(documents[document]) {
			if !place.MatchString(name) || strings.HasSuffix(name, "...") {
				continue
			}
			found, err := filepath.Glob(filepath.Join(root(t), filepath.FromSlash(name)))
			require.NoError(t, err)
			assert.NotEmpty(t, found, "%s names %s, which does not exist", document, name)
		}
	}
}
