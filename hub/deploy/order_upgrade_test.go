package deploy

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/spokelet/spokelet/hub/addon"
	"github.com/spokelet/spokelet/internal/addonconfig/fixture"
	"github.com/spokelet/spokelet/internal/names"
)

// A version before did not note the order of configurations on works. That nothing is noted says nothing against the
// content (decide_progress.go, rollsOut), and a new version that renders the same writes no work: an upgrade must not
// write all works of a fleet at once.
func TestAnUpgradeWritesNoWorkToNoteTheOrderOfItsConfigurations(t *testing.T) {
	for sentence, configs := range map[string][]string{"one configuration": {"one"}, "two of a kind": {"two", "one"}} {
		t.Run(sentence, func(t *testing.T) {
			f := factsOf(configMap("a", 1))
			for _, name := range configs {
				of := fixture.Desires(fixture.DeploymentConfig(name), "1")
				f.rendering.Configs = append(f.rendering.Configs, addon.ChosenConfig{
					ConfigGroupResource: of.ConfigGroupResource, ConfigSpecHash: *of.DesiredConfig,
				})
			}
			f, steps := simulate(t, f)
			require.NotEmpty(t, steps)
			for _, work := range f.works {
				delete(work.Annotations, names.AnnotationConfigOrder)
			}
			_, steps = simulate(t, f)
			assert.Empty(t, steps, "the works of all clusters are written again")
		})
	}
}
