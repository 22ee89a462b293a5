package addon_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"

	"github.com/spokelet/spokelet/hub/addon"
)

// An author asks Choice.Counting for a kind of its own, such as ConfigMaps. A program that is started again with the
// other --config-precedence renders from the other one, so what it rendered before is not what it renders now.
func TestAnotherPrecedenceRendersAgainWhateverTheKindIs(t *testing.T) {
	maps := addonv1beta1.ConfigGroupResource{Resource: "configmaps"}
	r := request(t)
	for _, name := range []string{"one", "two"} {
		chosen := addon.ChosenConfig{ConfigGroupResource: maps}
		chosen.Namespace, chosen.Name, chosen.SpecHash = "c1", name, "hash-of-"+name
		r.Choice.Configs = append(r.Choice.Configs, chosen)
	}
	agent := build(t, addon.Options{Version: "1"})
	counts, keys := map[string]bool{}, map[string]bool{}
	for _, precedence := range []addon.Precedence{addon.LastCounts, addon.FirstCounts} {
		r.Choice.Precedence = precedence
		counts[r.Choice.Counting(maps).Name] = true
		resolved, err := agent.Resolve(t.Context(), r)
		require.NoError(t, err)
		require.NotEmpty(t, resolved.Key)
		keys[resolved.Key] = true
	}
	require.Len(t, counts, 2, "another one counts")
	assert.Len(t, keys, 2, "so the objects are rendered again")
}
