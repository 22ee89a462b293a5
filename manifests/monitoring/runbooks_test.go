package monitoring

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// runbooks is the folder of the pages about alerts.
const runbooks = "../../docs/operations/runbooks"

// headings are those of each page, in order.
var headings = []string{"Meaning", "Impact", "What to look at", "What to do"}

func TestEachAlertHasItsRunbook(t *testing.T) {
	pages, err := filepath.Glob(filepath.Join(runbooks, "*.md"))
	require.NoError(t, err)
	var have, want []string
	for _, page := range pages {
		have = append(have, strings.TrimSuffix(filepath.Base(page), ".md"))
	}
	for _, a := range Alerts() {
		want = append(want, a.Name)
	}
	assert.ElementsMatch(t, want, have, "each alert has a page, and each page an alert")
	for _, page := range pages {
		text, err := os.ReadFile(page)
		require.NoError(t, err)
		assert.True(t, strings.HasPrefix(string(text), "# "+strings.TrimSuffix(filepath.Base(page), ".md")+"\n"), page)
		sections := regexp.MustCompile(`(?m)^## (.+)$`).FindAllStringSubmatch(string(text), -1)
		var found []string
		for _, section := range sections {
			found = append(found, section[1])
		}
		assert.Equal(t, headings, found, page)
		for i, part := range regexp.MustCompile(`(?m)^## .+$`).Split(string(text), -1)[1:] {
			assert.NotEmpty(t, strings.TrimSpace(part), "%s: %s", page, headings[i])
		}
		looks := strings.Split(strings.Split(string(text), "## What to look at")[1], "## What to do")[0]
		assert.Contains(t, looks, "kubectl spokelet ", page)
	}
}
