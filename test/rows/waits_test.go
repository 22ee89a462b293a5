package rows_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/spokelet/spokelet/test/sandbox"
)

// least is how many bytes a part of a sentence has that a test is searched for.
const least = 10

// joined matches what joins two parts of a text in Go.
var joined = regexp.MustCompile(`"\s*\+\s*"`)

// The table of what a cluster waits for in docs/reference/policies.md has a sentence and a test in each row, and the
// test, or a file beside it, has the sentence.
func TestWhatAClusterWaitsForHasItsTest(t *testing.T) {
	root, err := sandbox.ModuleRoot()
	require.NoError(t, err)
	page, err := os.ReadFile(filepath.Join(root, "docs", "reference", "policies.md"))
	require.NoError(t, err)
	_, rest, found := strings.Cut(string(page), "| waits for | sentence | it ends | test |\n")
	require.True(t, found)
	rows := 0
	for line := range strings.Lines(rest) {
		cells := strings.Split(strings.Trim(line, "|\n"), " | ")
		if !strings.HasPrefix(line, "|") {
			break
		}
		if strings.HasPrefix(line, "|---") {
			continue
		}
		rows++
		require.Len(t, cells, 4, line)
		folder, test, found := strings.Cut(strings.Trim(cells[3], "` "), ": ")
		require.True(t, found, line)
		texts := testsOf(t, filepath.Join(root, folder))
		// The texts are long, so that a failure does not print them.
		named := strings.Contains(texts, "func "+test+"(")
		assert.True(t, named, "there is no such test: %s", line)
		quoted := strings.Split(cells[1], "`")
		require.GreaterOrEqual(t, len(quoted), 2, line)
		for part := range strings.SplitSeq(quoted[1], "…") {
			if part = strings.TrimSpace(part); len(part) >= least {
				said := strings.Contains(texts, part)
				assert.True(t, said, "%s: no test of %s has %s", cells[0], folder, part)
			}
		}
	}
	assert.Greater(t, rows, 10)
}

// testsOf returns the tests of a package as one text, with the texts in them in one part.
func testsOf(t *testing.T, folder string) string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(folder, "*_test.go"))
	require.NoError(t, err)
	var all strings.Builder
	for _, file := range files {
		raw, err := os.ReadFile(file)
		require.NoError(t, err)
		all.Write(raw)
	}
	return joined.ReplaceAllString(all.String(), "")
}
