package hosted

import (
	"maps"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestTheSuiteRunsEveryCommandOfThePage(t *testing.T) {
	page, err := readPage(filepath.Join("..", pagePath))
	require.NoError(t, err)
	assert.ElementsMatch(t, []string{onManaged, forAgent, onHosting, consent, remove}, slices.Collect(maps.Keys(page)))
	for heading, lines := range page {
		for _, line := range lines {
			c, err := parse(line)
			require.NoError(t, err, "%s: %s", heading, line)
			assert.NotEmpty(t, c.words)
			assert.Contains(t, []string{"managed.kubeconfig", "hosting.kubeconfig", "agent.kubeconfig", ""}, c.config)
		}
	}
}
