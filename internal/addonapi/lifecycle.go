package addonapi

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/spokelet/spokelet/internal/names"
)

// Managed reports whether the hub installs, configures and rolls out the add-on of a ClusterManagementAddOn in any
// version. It does without the life-cycle
// annotation, with "addon-manager", and with the empty value that older add-on frameworks wrote over "self"
// (docs/reference/hub.md, "Lifecycle").
func Managed(management metav1.Object) bool {
	switch management.GetAnnotations()[names.AnnotationLifecycle] {
	case "", "addon-manager":
		return true
	}
	return false
}
