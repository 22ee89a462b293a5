package deploy

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/spokelet/spokelet/hub/addon"
	"github.com/spokelet/spokelet/internal/addonconfig/fixture"
)

// The annotation that selects the health probe counts with the next rollout of the template (steadyHealth). Values of
// AddOnDeploymentConfigs are none of the template: neither another order of them nor one less brings its content.
func TestAnotherOrderOfDeploymentConfigsIsNoRolloutOfTheTemplate(t *testing.T) {
	chosen := func(of ...addon.ChosenConfig) []addon.ChosenConfig { return of }
	config := func(name, hash string) addon.ChosenConfig {
		r := fixture.Desires(fixture.DeploymentConfig(name), hash)
		return addon.ChosenConfig{ConfigGroupResource: r.ConfigGroupResource, ConfigSpecHash: *r.DesiredConfig}
	}
	of := fixture.Desires(fixture.Template("t"), "1")
	template := addon.ChosenConfig{ConfigGroupResource: of.ConfigGroupResource, ConfigSpecHash: *of.DesiredConfig}
	one, two := config("one", "1"), config("two", "2")
	later := fixture.Desires(fixture.Template("u"), "2")
	other := addon.ChosenConfig{ConfigGroupResource: later.ConfigGroupResource, ConfigSpecHash: *later.DesiredConfig}
	f := factsOf(configMap("a", 1))
	f.rendering.Configs = chosen(one, two, template, other)
	f, steps := simulate(t, f)
	require.NotEmpty(t, steps)
	for sentence, tc := range map[string]struct {
		has  []addon.ChosenConfig
		want bool
	}{
		"the same": {has: chosen(one, two, template, other)},
		"another order of AddOnDeploymentConfigs": {has: chosen(two, one, template, other)},
		"one less AddOnDeploymentConfig":          {has: chosen(two, template, other)},
		"another order of templates":              {has: chosen(one, two, other, template), want: true},
		"one less template":                       {has: chosen(one, two, other), want: true},
	} {
		f.rendering.Configs = tc.has
		assert.Equal(t, tc.want, rollsOut(f, f.works), sentence)
	}
	// What another program left is not known.
	f.works[0].Spec.Workload.Manifests[0].Raw = []byte(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"b"}}`)
	f.rendering.Configs = chosen(one, two, other, template)
	assert.False(t, rollsOut(f, f.works))
}
