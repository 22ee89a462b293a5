package api

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var (
	// codeInCell finds the code in a cell of a table, and nameInCode the exported names in it.
	codeInCell = regexp.MustCompile("`([^`]+)`")
	nameInCode = regexp.MustCompile(`\b[A-Z]\w*`)
)

// Those who come from another library look for each of its names: what the page says it is called here is called so.
func TestThePageForThoseWhoMoveNamesWhatThereIs(t *testing.T) {
	page, err := os.ReadFile("../../docs/operations/move-from-addon-framework.md")
	require.NoError(t, err)
	exported := strings.Builder{}
	for name := range libraries() {
		golden, err := os.ReadFile(filepath.Join("testdata", name+".txt"))
		require.NoError(t, err)
		exported.Write(golden)
	}
	checked := 0
	for line := range strings.Lines(string(page)) {
		cells := strings.Split(strings.TrimSpace(line), "|")
		if len(cells) < 4 || strings.Contains(line, "helm.sh/hook") {
			continue
		}
		code := cells[2]
		if strings.HasPrefix(strings.TrimSpace(cells[2]), "the same") {
			code = withoutArguments(cells[1])
		}
		for _, span := range codeInCell.FindAllStringSubmatch(code, -1) {
			for _, name := range nameInCode.FindAllString(span[1], -1) {
				checked++
				assert.Regexp(t, `\b`+name+`\b`, exported.String(), "the page names %s: %s", name, line)
			}
		}
	}
	const least = 60
	assert.Greater(t, checked, least, "the page has tables of names")
}

// withoutArguments returns the code of a cell without what is in parentheses.
func withoutArguments(cell string) string {
	return regexp.MustCompile(`\([^)]*\)`).ReplaceAllString(cell, "")
}
