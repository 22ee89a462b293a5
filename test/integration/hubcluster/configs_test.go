package hubcluster_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"

	"github.com/spokelet/spokelet/test/suite"
)

// TestTheStatusOfAnAddOnKeepsTheOrderOfItsConfigurations names several configurations of one kind, in an order that is
// not that of their names: most add-ons use the first.
//
// Shows: hub/order-of-configurations
func TestTheStatusOfAnAddOnKeepsTheOrderOfItsConfigurations(t *testing.T) {
	t.Parallel()
	namespace := plane.Namespace(t, "ordered")
	named := []string{"c", "a", "d", "b"}
	var configs []addonv1alpha1.AddOnConfig
	for _, name := range named {
		require.NoError(t, plane.Client.Create(t.Context(), &addonv1alpha1.AddOnDeploymentConfig{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		}))
		configs = append(configs, addonv1alpha1.AddOnConfig{
			ConfigGroupResource: addonv1alpha1.ConfigGroupResource{
				Group: addonv1alpha1.GroupName, Resource: "addondeploymentconfigs",
			},
			ConfigReferent: addonv1alpha1.ConfigReferent{Namespace: namespace, Name: name},
		})
	}
	cma := &addonv1alpha1.ClusterManagementAddOn{
		ObjectMeta: metav1.ObjectMeta{Name: suite.UniqueName("ordered")},
		Spec: addonv1alpha1.ClusterManagementAddOnSpec{InstallStrategy: addonv1alpha1.InstallStrategy{
			Type: addonv1alpha1.AddonInstallStrategyPlacements,
			Placements: []addonv1alpha1.PlacementStrategy{{
				PlacementRef: addonv1alpha1.PlacementRef{Namespace: namespace, Name: "p"}, Configs: configs,
			}},
		}},
	}
	require.NoError(t, plane.Client.Create(t.Context(), cma))
	expect := func(want ...string) {
		t.Helper()
		suite.Eventually(t, func() error {
			have, err := plane.AddOns.GetClusterManagementAddOn(t.Context(), cma.Name)
			if err != nil {
				return err
			}
			var names []string
			for _, progression := range have.Status.InstallProgressions {
				for _, reference := range progression.ConfigReferences {
					names = append(names, reference.DesiredConfig.Name)
				}
			}
			if !slices.Equal(want, names) {
				return fmt.Errorf("the order is %v and not %v", names, want)
			}
			return nil
		})
	}
	expect("c", "a", "d", "b")
	slices.Reverse(configs)
	encoded, err := json.Marshal(configs)
	require.NoError(t, err)
	patch(t, cma, fmt.Sprintf(`{"spec":{"installStrategy":{"type":"Placements","placements":[{"namespace":%q,"name":"p",`+
		`"configs":%s}]}}}`, namespace, encoded))
	expect("b", "d", "a", "c")
}
