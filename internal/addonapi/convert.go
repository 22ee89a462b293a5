package addonapi

import (
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
)

// AddOnToBeta is being written.
func AddOnToBeta(in *addonv1alpha1.ManagedClusterAddOn) *addonv1beta1.ManagedClusterAddOn { return nil }

// AddOnToAlpha is being written.
func AddOnToAlpha(in *addonv1beta1.ManagedClusterAddOn) *addonv1alpha1.ManagedClusterAddOn { return nil }

// ManagementToBeta is being written.
func ManagementToBeta(in *addonv1alpha1.ClusterManagementAddOn) *addonv1beta1.ClusterManagementAddOn {
	return nil
}

// ManagementToAlpha is being written.
func ManagementToAlpha(in *addonv1beta1.ClusterManagementAddOn) *addonv1alpha1.ClusterManagementAddOn {
	return nil
}
