package install

import (
	"encoding/json"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/spokelet/spokelet/internal/names"
)

// TrimAddOn is the transformation for the cache of ManagedClusterAddOns. Of the managed fields it keeps one entry with
// the name of the manager, if the same one wrote the spec and the ClusterManagementAddOn as owner: so does an add-on
// manager that creates the add-ons of placements, OCM's too. A person who creates one leaves the owner to the manager.
// What carries our label needs no such proof.
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

// creator returns the manager that wrote both spec and owner of an add-on; empty when there is none.
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

// installedBy returns the manager that installed an add-on which does not carry our label, as TrimAddOn found it; empty when
// a person may have made it.
func installedBy(f facts) string {
	if _, known := f.addon.Labels[names.LabelInstalledBy]; known || len(f.addon.ManagedFields) != 1 {
		return ""
	}
	if _, applied := f.addon.Annotations["kubectl.kubernetes.io/last-applied-configuration"]; applied {
		return ""
	}
	return f.addon.ManagedFields[0].Manager
}
