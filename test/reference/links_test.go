package reference_test

import (
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/spokelet/spokelet/test/reference"
)

// link is the target of a link in Markdown.
var link = regexp.MustCompile(`\]\(([^)\s]+)\)`)

// TestEveryLinkLeadsSomewhere looks at the relative links of all documents: the file, and the heading behind a "#".
func TestEveryLinkLeadsSomewhere(t *testing.T) {
	documents, err := reference.Files(root(t), ".md")
	require.NoError(t, err)
	require.NotEmpty(t, documents)
	for name, text := range documents {
		for _, match := range link.FindAllStringSubmatch(text, -1) {
			target, anchor, _ := strings.Cut(match[1], "#")
			if strings.Contains(target, ":") {
				continue
			}
			file := name
			if target != "" {
				file = path.Join(path.Dir(name), target)
				_, err := os.Stat(filepath.Join(root(t), filepath.FromSlash(file)))
				assert.NoError(t, err, "%s links to %s, which does not exist", name, match[1])
			}
			if anchor != "" && strings.HasSuffix(file, ".md") {
				assert.Contains(t, anchors(documents[file]), anchor, "%s links to %s, and there is no such heading", name, match[1])
			}
		}
	}
}

// anchors returns the anchors of all headings of a page.
func anchors(text string) []string {
	var all []string
	for _, heading := range reference.Headings(text) {
		all = append(all, reference.Anchor(heading))
	}
	return all
}
