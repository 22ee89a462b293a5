package deploy

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"

	"github.com/spokelet/spokelet/hub/addon"
	"github.com/spokelet/spokelet/hub/deploy/works"
	"github.com/spokelet/spokelet/internal/addonconfig/fixture"
)

// The progress of an add-on has the orders from which its works are known to be rendered. A program of another project
// that writes a work in place leaves the annotations that it does not know, and the rollout goes on.
//
// Shows: hub/config-order
func TestTheProgressHasNoOrderOfAWorkThatAnotherProgramWrote(t *testing.T) {
	f := factsOf(configMap("a", 300_000), configMap("b", 300_000))
	for _, name := range []string{"one", "two"} {
		of := fixture.Desires(fixture.DeploymentConfig(name), "1")
		f.rendering.Configs = append(f.rendering.Configs, addon.ChosenConfig{
			ConfigGroupResource: of.ConfigGroupResource, ConfigSpecHash: *of.DesiredConfig,
		})
	}
	var got addon.Progress
	f.configuration.Record = func(_ *addonv1beta1.ManagedClusterAddOn, p addon.Progress) { got = p }
	f, _ = simulate(t, f)
	require.Len(t, f.works, 2)
	order := works.ConfigOrder(f.rendering.Configs)
	f.record(f.addOn.DeepCopy(), f.works, false)
	assert.Equal(t, []string{order, order}, got.Orders)

	f.works[0].Spec.Workload.Manifests[0].Raw = []byte(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c"}}`)
	f.record(f.addOn.DeepCopy(), f.works, false)
	assert.Equal(t, []string{order}, got.Orders)
	assert.Len(t, got.Works, 2)
}
