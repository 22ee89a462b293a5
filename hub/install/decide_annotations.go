package install

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/spokelet/spokelet/internal/names"
)

// copied returns the annotations of an add-on with those of its cluster that are copied, and whether they differ from
// have. A record on the add-on names what was copied; only that is changed and removed later. What the add-on has
// without a record belongs to the user who set it. An add-on without a record was installed by another manager, or by
// an earlier version: what equals the annotation of the cluster counts as copied. What others copied and we do not
// stays as it is, with its record, as long as the cluster has it: the record tells that the cluster's own agent may
// have chosen it.
func copied(have, cluster map[string]string, asOCM bool) (map[string]string, bool) {
	record, recorded := have[names.AnnotationCopied]
	ours := sets.New[string]()
	for _, name := range strings.Split(record, ",") {
		if name != "" {
			ours.Insert(names.AnnotationAddonPrefix + name)
		}
	}
	want := map[string]string{}
	maps.Copy(want, have)
	var now []string
	for key, value := range cluster {
		there, exists := have[key]
		switch follows := isCopied(key, asOCM); {
		case !isOfAddOns(key), !follows && !exists:
			continue
		case exists && !ours.Has(key) && (recorded || there != value):
			continue
		case follows:
			want[key] = value
		}
		now = append(now, strings.TrimPrefix(key, names.AnnotationAddonPrefix))
	}
	for key := range ours {
		if _, exists := cluster[key]; !exists {
			delete(want, key)
		}
	}
	slices.Sort(now)
	if len(now) > 0 || recorded {
		want[names.AnnotationCopied] = strings.Join(now, ",")
	}
	return want, !maps.Equal(have, want)
}

// isCopied reports whether an annotation of a cluster is copied to its add-ons. Agents write their cluster, so these
// are only the values of an add-on, which change nothing elsewhere. The hub of OCM copies all of the prefix, the
// hosting cluster among them.
func isCopied(key string, asOCM bool) bool {
	return isOfAddOns(key) && (asOCM || key == names.AnnotationValues)
}

// isOfAddOns reports whether an annotation of a cluster is about its add-ons. One of the prefix is not: it stands for a
// field of the add-on in another version of the API.
func isOfAddOns(key string) bool {
	return strings.HasPrefix(key, names.AnnotationAddonPrefix) && key != names.AnnotationInstallNamespace
}

// sameCopied reports whether an add-on with some annotations gets the same from two copies of its cluster. What is not
// copied does not count: agents may write that all the time.
func sameCopied(have, a, b map[string]string, asOCM bool) bool {
	one, _ := copied(have, a, asOCM)
	other, _ := copied(have, b, asOCM)
	return sameAboutAddOns(one, other)
}

// sameAboutAddOns reports whether two sets of annotations of an add-on have the same that may be copied. The record of
// what was copied is left out: nothing is rendered from it.
func sameAboutAddOns(a, b map[string]string) bool {
	about := func(all map[string]string) map[string]string {
		found := copiedOf(all)
		delete(found, names.AnnotationCopied)
		return found
	}
	return maps.Equal(about(a), about(b))
}

// copiedOf returns the annotations of a cluster that may be copied, or of an add-on that may have been.
func copiedOf(annotations map[string]string) map[string]string {
	var found map[string]string
	for key, value := range annotations {
		if isOfAddOns(key) || key == names.AnnotationCopied {
			if found == nil {
				found = map[string]string{}
			}
			found[key] = value
		}
	}
	return found
}

// TrimAddOn is the cache transformation of ManagedClusterAddOns. It reduces managedFields to the name of the manager
// that wrote both the spec and the owner reference to the ClusterManagementAddOn. Add-on managers that install for
// placements do so, OCM's too; a person leaves the owner reference to the manager, and one who applies all of it with
// kubectl leaves an annotation. With our label, no such proof is needed.
func TrimAddOn(in any) (any, error) {
	o, isObject := in.(metav1.Object)
	if !isObject {
		return in, nil // a transformation must pass on what it does not know
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
		if json.Unmarshal(entry.FieldsV1.GetRawBytes(), &fields) != nil {
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
