package template

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/spokelet/spokelet/hub/addon"
)

// Shows: hub/config-precedence
func TestOneOfSeveralConfigurationsOfAKindCounts(t *testing.T) {
	first, last := configObject("cfg", "one", "1"), configObject("other", "two", "2")
	old, young := templateObject("old", "a", "old {{V}}"), templateObject("young", "a", "young {{V}}")
	keys := map[string]bool{}
	for precedence, want := range map[addon.Precedence]struct{ data, config, template string }{
		"":               {"young 2", "the last counts, which is other/two", "the last counts, which is young"},
		addon.LastCounts: {"young 2", "the last counts, which is other/two", "the last counts, which is young"},
		addon.FirstCounts: {
			"old 1", "the first counts, which is cfg/one", "the first counts, which is old",
		},
	} {
		t.Run("precedence "+string(precedence), func(t *testing.T) {
			w := newWorld(t)
			w.request.Choice.Precedence = precedence
			w.request.Choice.Configs = []addon.ChosenConfig{
				chosen(t, first), chosen(t, last), chosen(t, old), chosen(t, young),
			}
			rendering, err := w.agent.Render(t.Context(), w.request)
			require.NoError(t, err)
			assert.Equal(t, map[string]any{"k": want.data}, rendering.Objects[0].Object["data"])
			resolved, err := w.agent.Resolve(t.Context(), w.request)
			require.NoError(t, err)
			assert.Equal(t, []string{
				"Of 2 configurations of kind AddOnDeploymentConfig, " + want.config +
					", and the others are not used (--config-precedence).",
				"Of 2 configurations of kind AddOnTemplate, " + want.template +
					", and the others are not used (--config-precedence).",
			}, resolved.Remarks)
			keys[resolved.Key] = true
		})
	}
	assert.Len(t, keys, 2, "another one that counts is another rendering")

	w := newWorld(t)
	one, err := w.agent.Resolve(t.Context(), w.request)
	require.NoError(t, err)
	assert.Empty(t, one.Remarks)
	w.request.Choice.Precedence = addon.FirstCounts
	same, err := w.agent.Resolve(t.Context(), w.request)
	require.NoError(t, err)
	assert.Equal(t, one.Key, same.Key, "of one, nothing is rendered again")
}
