package addonapi

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/spokelet/spokelet/internal/confighash"
)

// A hub may serve each kind in one version alone: v1alpha1 before OCM had v1beta1, and v1beta1 some day.
func TestTheServedVersionsAreFound(t *testing.T) {
	for name, tc := range map[string]struct {
		served  []string
		wire    Wire
		configs confighash.Versions
	}{
		"both":         {[]string{"v1alpha1", "v1beta1"}, WireAlpha, confighash.Versions{Template: "v1alpha1", DeploymentConfig: "v1beta1"}},
		"the older":    {[]string{"v1alpha1"}, WireAlpha, confighash.Versions{Template: "v1alpha1", DeploymentConfig: "v1alpha1"}},
		"the newer":    {[]string{"v1beta1"}, WireBeta, confighash.Versions{Template: "v1beta1", DeploymentConfig: "v1beta1"}},
		"none of them": {nil, "", confighash.Versions{}},
	} {
		t.Run(name, func(t *testing.T) {
			mapper := meta.NewDefaultRESTMapper(nil)
			for _, version := range tc.served {
				for _, kind := range []string{"ManagedClusterAddOn", "AddOnTemplate", "AddOnDeploymentConfig"} {
					mapper.Add(schema.GroupVersionKind{
						Group: "addon.open-cluster-management.io", Version: version, Kind: kind,
					}, meta.RESTScopeRoot)
				}
			}
			configs, err := DetectConfigs(mapper)
			require.NoError(t, err)
			assert.Equal(t, tc.configs, configs)
			wire, err := Detect(mapper)
			assert.Equal(t, tc.wire == "", err != nil, "%v", err)
			assert.Equal(t, tc.wire, wire)
		})
	}
}
