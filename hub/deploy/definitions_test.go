package deploy

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"

	"github.com/spokelet/spokelet/hub/addon"
)

// What only an undone content defines stays in the works until the add-on gets another content: a cluster that keeps what
// it returned to may be told nothing of an undo, as where a policy cannot be decoded, or no placement selects it.
func TestDefinitionsStayUntilAnotherContentComes(t *testing.T) {
	f := factsOf(configMap("one", 10))
	has := func(hash string) []addon.ChosenConfig {
		return []addon.ChosenConfig{{ConfigSpecHash: addonv1beta1.ConfigSpecHash{SpecHash: hash}}}
	}
	chooses := func(hash string, undo bool) {
		f.configuration.Choice.Configs, f.configuration.Choice.Undo = has(hash), undo
		f.rendering.Configs = has(hash)
	}
	chooses("new", false)
	f = settled(t, f)
	assert.False(t, keepsDefinitions(f))
	chooses("old", true)
	f = settled(t, f)
	chooses("old", false)
	require.True(t, keepsDefinitions(f))
	f = settled(t, f)
	assert.True(t, keepsDefinitions(f), "also when its works are written again")
	chooses("next", false)
	assert.False(t, keepsDefinitions(f))
}
