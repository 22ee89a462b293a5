package rows_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/spokelet/spokelet/internal/causes"
	"github.com/spokelet/spokelet/test/sandbox"
)

// heading is that of a code, with the beginning of its text.
var heading = regexp.MustCompile(`(?m)^### (SPK\d{3})\n\n([^.]+)\.`)

// The command prints the code and where it is explained; the page explains no code that the command does not have.
func TestEveryCodeHasItsHeading(t *testing.T) {
	root, err := sandbox.ModuleRoot()
	require.NoError(t, err)
	page, err := os.ReadFile(filepath.Join(root, "docs", "operations", "messages.md"))
	require.NoError(t, err)
	explained := map[causes.Code]string{}
	for _, match := range heading.FindAllStringSubmatch(string(page), -1) {
		explained[causes.Code(match[1])] = strings.ToLower(strings.Join(strings.Fields(match[2]), " "))
	}
	titles := map[causes.Code]string{}
	for code, title := range causes.Titles() {
		titles[code] = strings.ToLower(title)
	}
	assert.Equal(t, titles, explained)
}
