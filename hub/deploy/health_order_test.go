package deploy

import (
	"testing"

	"github.com/stretchr/testify/assert"
	workv1 "open-cluster-management.io/api/work/v1"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/spokelet/spokelet/hub/addon"
	"github.com/spokelet/spokelet/hub/deploy/works"
	"github.com/spokelet/spokelet/internal/addonconfig/fixture"
	"github.com/spokelet/spokelet/internal/names"
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
	had := chosen(one, two, template)
	own := []*workv1.ManifestWork{{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{
		names.AnnotationConfigSpecHash: works.ConfigHashes(had), names.AnnotationConfigOrder: works.ConfigOrder(had),
	}}}}
	for sentence, has := range map[string][]addon.ChosenConfig{
		"another order": chosen(two, one, template),
		"one less":      chosen(two, template),
	} {
		f := factsOf()
		f.rendering.Configs = has
		assert.False(t, rollsOut(f, own), "%s of AddOnDeploymentConfigs brings the same content of the template", sentence)
	}
}
