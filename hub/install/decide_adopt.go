package install

import (
	"encoding/json"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/spokelet/spokelet/internal/names"
)

// TrimAddOn is the cache transformation of ManagedClusterAddOns. It reduces managedFields to the name of the manager
// that wrote both the spec and the owner reference to the ClusterManagementAddOn. Add-on managers that install for
// placements do so, OCM's too; a person leaves the owner reference to the manager, and one who applies all of it with
// kubectl leaves an annotation. With our label, no such proof is needed.
func TrimAddOn(in any) (any, error) {
	o, err := meta.Accessor(in)
	if err != nil {
		return in, nil //nolint:nilerr // a transformation must pass on what it does not know
	}
	entries := o.GetManagedFields()
	o.SetManagedFields(nil)
	if _, known := o.GetLabels()[names.LabelInstalledBy]; known {
		return in, nil
	}
	// The cache drops the annotation, so this is where it is seen.
	if _, applied := o.GetAnnotations()[corev1.LastAppliedConfigAnnotation]; applied {
		return in, nil
	}
	// A cache may transform the same object again.
	manager := creator(o, entries)
	if len(entries) == 1 && entries[0].FieldsV1 == nil {
		manager = entries[0].Manager
	}
	if manager != "" {
		o.SetManagedFields([]metav1.ManagedFieldsEntry{{Manager: manager}})
	}
	return in, nil
}

// creator returns the manager that wrote both spec and owner reference of an add-on; empty when there is none.
func creator(o metav1.Object, entries []metav1.ManagedFieldsEntry) string {
	var key string
	for _, ref := range o.GetOwnerReferences() {
		if isOwnerReference(ref, o.GetName()) && isTrue(ref.Controller) {
			key = `k:{"uid":"` + string(ref.UID) + `"}`
		}
	}
	if key == "" {
		return ""
	}
	owners, authors := map[string]bool{}, map[string]bool{}
	for _, entry := range entries {
		if entry.Subresource != "" || entry.FieldsV1 == nil {
			continue
		}
		var fields struct {
			Metadata struct {
				Owners map[string]json.RawMessage `json:"f:ownerReferences"`
			} `json:"f:metadata"`
			Spec json.RawMessage `json:"f:spec"`
		}
		if json.Unmarshal(entry.FieldsV1.Raw, &fields) != nil {
			return ""
		}
		if _, owns := fields.Metadata.Owners[key]; owns {
			owners[entry.Manager] = true
		}
		if fields.Spec != nil {
			authors[entry.Manager] = true
		}
	}
	for manager := range authors {
		if len(authors) == 1 && owners[manager] {
			return manager
		}
	}
	return ""
}

// installedBy returns the manager that installed an add-on without our label, as found by TrimAddOn; empty when a
// person may have created it.
func installedBy(addon metav1.Object) string {
	fields := addon.GetManagedFields()
	if _, known := addon.GetLabels()[names.LabelInstalledBy]; known || len(fields) != 1 {
		return ""
	}
	return fields[0].Manager
}
