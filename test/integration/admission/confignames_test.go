package admission_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"

	"github.com/spokelet/spokelet/internal/addonapi"
	"github.com/spokelet/spokelet/test/suite"
)

const configNames = "addon-config-names.spokelet.io"

// Shows: hub/reserved-name
func TestNoConfigurationHasTheReservedName(t *testing.T) {
	t.Parallel()
	resource := addonv1alpha1.ConfigGroupResource{Group: "g", Resource: "r"}
	reserved := addonv1alpha1.ConfigReferent{Name: addonapi.ReservedNoDefault}
	configs := []addonv1alpha1.AddOnConfig{{ConfigGroupResource: resource, ConfigReferent: reserved}}
	addOn := &addonv1alpha1.ManagedClusterAddOn{
		ObjectMeta: metav1.ObjectMeta{Namespace: plane.Namespace(t, "reserved"), Name: "hello"},
		Spec:       addonv1alpha1.ManagedClusterAddOnSpec{Configs: configs},
	}
	invalid(t, plane.Client.Create(t.Context(), addOn), configNames, "spec.configs has an entry with the reserved name")
	addOn.Spec.Configs = nil
	require.NoError(t, plane.Client.Create(t.Context(), addOn))
	addOn.Labels = map[string]string{"a": "b"}
	require.NoError(t, plane.Client.Update(t.Context(), addOn))
	addOn.Spec.Configs = configs
	invalid(t, plane.Client.Update(t.Context(), addOn), configNames, "spec.configs has an entry with the reserved name")

	management := &addonv1alpha1.ClusterManagementAddOn{
		ObjectMeta: metav1.ObjectMeta{Name: suite.UniqueName("reserved")},
		Spec: addonv1alpha1.ClusterManagementAddOnSpec{
			SupportedConfigs: []addonv1alpha1.ConfigMeta{{ConfigGroupResource: resource, DefaultConfig: &reserved}},
			InstallStrategy: addonv1alpha1.InstallStrategy{
				Type: addonv1alpha1.AddonInstallStrategyPlacements,
				Placements: []addonv1alpha1.PlacementStrategy{{
					PlacementRef: addonv1alpha1.PlacementRef{Namespace: "ns", Name: "p"}, Configs: configs,
				}},
			},
		},
	}
	invalid(t, plane.Client.Create(t.Context(), management), configNames, "placements has an entry of configs")
	management.Spec.InstallStrategy.Placements[0].Configs = nil
	invalid(t, plane.Client.Create(t.Context(), management), configNames, "remove defaultConfig, and there is no default")
	management.Spec.SupportedConfigs[0].DefaultConfig = nil
	require.NoError(t, plane.Client.Create(t.Context(), management))
}
