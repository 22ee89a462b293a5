package addonapi

import (
	"testing"

	"github.com/stretchr/testify/assert"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
)

func TestAClusterManagementAddOnIsFoundByItsPlacements(t *testing.T) {
	cma := &addonv1beta1.ClusterManagementAddOn{}
	for _, name := range []string{"p", "q"} {
		cma.Spec.InstallStrategy.Placements = append(cma.Spec.InstallStrategy.Placements, addonv1beta1.PlacementStrategy{
			PlacementRef: addonv1beta1.PlacementRef{Namespace: "ns", Name: name},
		})
	}
	cma.Spec.InstallStrategy.Type = addonv1beta1.AddonInstallStrategyPlacements
	want := []string{PlacementKey("ns", "p"), PlacementKey("ns", "q")}
	assert.Equal(t, want, placementKeys(cma))
	assert.Equal(t, want, placementKeys(ClusterManagementAddOnToAlpha(cma)))
	cma.Spec.InstallStrategy.Type = addonv1beta1.AddonInstallStrategyManual
	assert.Empty(t, placementKeys(cma), "placements of an add-on that people install do not count")
	assert.Empty(t, placementKeys(&addonv1alpha1.ManagedClusterAddOn{}))
}

func TestAPlacementDecisionIsFoundByItsClusters(t *testing.T) {
	decision := &clusterv1beta1.PlacementDecision{}
	decision.Status.Decisions = []clusterv1beta1.ClusterDecision{{ClusterName: "a"}, {ClusterName: "b"}}
	assert.Equal(t, []string{"a", "b"}, SelectedClusters(decision))
	assert.Empty(t, SelectedClusters(&clusterv1beta1.Placement{}))
}
