package addonconfig

import (
	"testing"

	"github.com/stretchr/testify/assert"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"

	"github.com/spokelet/spokelet/internal/addonapi"
	"github.com/spokelet/spokelet/internal/addonconfig/fixture"
	"github.com/spokelet/spokelet/internal/confighash"
)

func TestIndexKeys(t *testing.T) {
	cma := fixture.NewCMA([]addonv1beta1.AddOnConfig{fixture.Template("t")}, fixture.Placement("p", fixture.DeploymentConfig("d")), fixture.Placement("q"))
	keys := cmaConfigKeys(addonapi.ClusterManagementAddOnToAlpha(cma))
	assert.Equal(t, []string{
		"addontemplates.addon.open-cluster-management.io//t",
		"addondeploymentconfigs.addon.open-cluster-management.io/ns/d",
	}, keys)

	for i, config := range []addonv1beta1.AddOnConfig{fixture.Template("t"), fixture.DeploymentConfig("d")} {
		object, known := confighash.New(config.ConfigGroupResource)
		assert.True(t, known)
		object.SetName(config.Name)
		object.SetNamespace(config.Namespace)
		assert.Equal(t, keys[i], ConfigKeyOf(object), "an event finds who asks for the config")
	}
}
