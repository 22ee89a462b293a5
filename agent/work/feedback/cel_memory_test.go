package feedback

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Shows: security/expressions-take-little-memory
//
// An author of works, also one with an executor that may only get an object, writes the rules of its conditions. The
// agent has 128 MiB.
func TestAnAuthorCannotFillTheMemoryByARule(t *testing.T) {
	const most = 16 << 20
	long, source, plenty := strings.Repeat("a", 500), newCEL(), int64(MaxManifestCost)
	_, err := source.condition(t.Context(), "true", nil, &plenty) // the environment
	require.NoError(t, err)
	for sentence, text := range map[string]string{
		"a regular expression":            fmt.Sprintf(`object.metadata.name.matches("(%s){1000}")`, long),
		"one that is made of two":         fmt.Sprintf(`object.metadata.name.matches("(" + "%s" + "){1000}")`, long),
		"one that finds":                  fmt.Sprintf(`object.metadata.name.find("(%s){1000}") == ""`, long),
		"a quantity with a long exponent": `quantity("1e-4000000").isGreaterThan(quantity("1"))`,
	} {
		t.Run(sentence, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			budget := int64(MaxManifestCost)
			_, err := source.condition(t.Context(), text, map[string]any{"metadata": map[string]any{"name": "x"}}, &budget)
			runtime.ReadMemStats(&after)
			require.Error(t, err)
			assert.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(most), "%d bytes of text", len(text))
		})
	}
}
