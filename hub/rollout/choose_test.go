package rollout

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1alpha1 "open-cluster-management.io/api/cluster/v1alpha1"

	"github.com/spokelet/spokelet/hub/addon"
	"github.com/spokelet/spokelet/internal/names"
)

func chosen(config addonv1beta1.AddOnConfig, hash string) addon.ChosenConfig {
	return addon.ChosenConfig{ConfigGroupResource: config.ConfigGroupResource, ConfigSpecHash: *hashed(config, hash)}
}

func TestChoice(t *testing.T) {
	found := configStates{
		template("v1"): {hash: "h1"}, template("v2"): {hash: "h2"}, deployment("a"): {hash: "ha"},
		template("gone"): {missing: true}, configMap("c"): {foreign: true},
	}
	byPlacement := func(a *addonv1beta1.ManagedClusterAddOn) *addonv1beta1.ManagedClusterAddOn {
		a.Labels = map[string]string{names.LabelInstalledBy: names.InstalledByPlacement}
		return a
	}
	asking := func(configs ...addonv1beta1.AddOnConfig) *addonv1beta1.ManagedClusterAddOn {
		a := addOn("c1")
		a.Spec.Configs = configs
		return a
	}
	defaults := []addonv1beta1.AddOnConfig{template("v1"), deployment("a")}
	tests := map[string]struct {
		facts   addOnFacts
		want    []addon.ChosenConfig
		blocked string
		// waits says that nothing can be chosen.
		waits string
	}{
		"the defaults, where nobody asks for more": {
			facts: addOnFacts{addon: addOn("c1"), cma: newCMA(defaults), placement: -1},
			want:  []addon.ChosenConfig{chosen(deployment("a"), "ha"), chosen(template("v1"), "h1")},
		},
		"what the agent wrote into the status counts for nothing": {
			facts: addOnFacts{
				addon: addOn("c1", has(template("v2"), "h2")), cma: newCMA(defaults), placement: -1,
			},
			want: []addon.ChosenConfig{chosen(deployment("a"), "ha"), chosen(template("v1"), "h1")},
		},
		"the placement that owns the cluster comes before the defaults": {
			facts: addOnFacts{
				addon: addOn("c1"), cma: newCMA(defaults, placement("p", template("v2"))), placement: 0,
			},
			want: []addon.ChosenConfig{chosen(deployment("a"), "ha"), chosen(template("v2"), "h2")},
		},
		"the add-on's own spec comes before all": {
			facts: addOnFacts{
				addon: asking(template("v1")), cma: newCMA(nil, placement("p", template("v2"))), placement: 0,
			},
			want: []addon.ChosenConfig{chosen(template("v1"), "h1")},
		},
		"what does not exist holds the rendering": {
			facts: addOnFacts{addon: addOn("c1", has(template("v1"), "h1")),
				cma: newCMA([]addonv1beta1.AddOnConfig{template("gone")}), placement: -1},
			want: []addon.ChosenConfig{chosen(template("gone"), "")}, blocked: `addontemplates "gone" does not exist`,
		},
		"so does a hash that nobody reported": {
			facts: addOnFacts{addon: addOn("c1"),
				cma: newCMA([]addonv1beta1.AddOnConfig{template("v1"), configMap("c")}), placement: -1},
			want:    []addon.ChosenConfig{chosen(configMap("c"), ""), chosen(template("v1"), "h1")},
			blocked: "is not known yet",
		},
		"so does a strategy that is not supported": {
			facts: addOnFacts{addon: addOn("c1"), placement: 0, cma: newCMA(nil, byStrategy(
				clusterv1alpha1.RolloutStrategy{Type: clusterv1alpha1.Progressive}, placement("p", template("v1"))))},
			want: []addon.ChosenConfig{chosen(template("v1"), "h1")}, blocked: "Progressive is not supported",
		},
		"no placement selects the cluster, and all ask for the same": {
			facts: addOnFacts{addon: byPlacement(addOn("c1")), placement: -1,
				cma: newCMA(defaults, placement("p", template("v2")), placement("q", template("v2")))},
			want: []addon.ChosenConfig{chosen(deployment("a"), "ha"), chosen(template("v2"), "h2")},
		},
		"no placement selects the cluster, and they differ": {
			facts: addOnFacts{addon: byPlacement(addOn("c1", has(template("v2"), "h2"))), placement: -1,
				cma: newCMA(defaults, placement("p", template("v1")), placement("q", template("v2")))},
			waits: "its placements ask for different configurations",
		},
	}
	for sentence, tc := range tests {
		t.Run(sentence, func(t *testing.T) {
			tc.facts.now, tc.facts.found = noon, found
			wanted, err := tc.facts.intended()
			if tc.waits != "" {
				require.ErrorContains(t, err, tc.waits)
				assert.True(t, addon.IsNotReady(err))
				return
			}
			require.NoError(t, err)
			choice := tc.facts.choice(wanted)
			assert.Equal(t, tc.want, choice.Configs)
			if tc.blocked == "" {
				assert.Empty(t, choice.Blocked)
				return
			}
			assert.Contains(t, choice.Blocked, tc.blocked)
		})
	}
}
