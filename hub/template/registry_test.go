package template

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/spokelet/spokelet/hub/addon"
	"github.com/spokelet/spokelet/internal/addonapi"
	"github.com/spokelet/spokelet/internal/confighash"
)

// TestLargeTemplatesAreCompiledOnce: a hub has some large templates, such as dashboards and definitions, which every
// cluster needs. Contents that were are kept only within a limit of bytes.
func TestLargeTemplatesAreCompiledOnce(t *testing.T) {
	templateOf := func(name string, value any) addon.ChosenConfig {
		u, _ := confighash.New(confighash.Template())
		u.SetName(name)
		u.Object["spec"] = map[string]any{"addonName": "a", "agentSpec": map[string]any{"workload": map[string]any{
			"manifests": []any{map[string]any{
				"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "x", "namespace": "ns"}, "data": value,
			}},
		}}}
		return chosen(t, u)
	}
	r := NewRegistry(nil, addonapi.Client{}, nil, "")
	var all []addon.ChosenConfig
	for i := range 12 {
		all = append(all, templateOf(fmt.Sprint("t", i), map[string]any{"text": strings.Repeat("x", 660_000)}))
	}
	seen := map[*Compiled]bool{}
	for range 5 {
		for _, config := range all {
			c, err := r.read(config)
			require.NoError(t, err)
			seen[c] = true
		}
	}
	assert.Len(t, seen, 12)
	for i := range 8 {
		_, err := r.read(templateOf("dense", map[string]any{"n": fmt.Sprint(i), "x": slices.Repeat([]any{map[string]any{}}, 400_000)}))
		require.NoError(t, err)
	}
	assert.Less(t, r.compiled.Len(), 12+8, "each edit of a dense template takes some 20 MiB")
	assert.LessOrEqual(t, r.compiled.Size(), maxTemplates)
}
