package addonapi

import (
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"

	"github.com/spokelet/spokelet/internal/names"
)

// Managed reports whether the hub installs, configures and rolls out an add-on. It does without the life-cycle
// annotation, with "addon-manager", and with the empty value that older add-on frameworks wrote over "self"
// (docs/reference/hub.md, "Lifecycle").
func Managed(management *addonv1beta1.ClusterManagementAddOn) bool {
	switch management.Annotations[names.AnnotationLifecycle] {
	case "", "addon-manager":
		return true
	}
	return false
}
