package ssa

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/spokelet/spokelet/internal/names"
)

// HandOver corrects the managed fields of an object for server-side apply and reports whether that changes them. The
// owner reference of the work belongs to this agent, not to the manager that applies: otherwise the next applied
// configuration, which has no owner, would remove it. With adopt, the content that this agent wrote under another
// strategy becomes applied by the manager: otherwise the agent would be in conflict with itself, and a field that
// leaves the manifest would stay (docs/reference/work.md, "Moving from another agent").
func HandOver(object *unstructured.Unstructured, manager string, owner types.UID, adopt bool,
) ([]metav1.ManagedFieldsEntry, bool) {
	var rest []metav1.ManagedFieldsEntry
	applied := metav1.ManagedFieldsEntry{Manager: manager, Operation: metav1.ManagedFieldsOperationApply}
	written := metav1.ManagedFieldsEntry{
		Manager: names.FieldManagerWork, Operation: metav1.ManagedFieldsOperationUpdate,
	}
	mine, ours := &fieldpath.Set{}, &fieldpath.Set{}
	entries := object.GetManagedFields()
	for i := range entries {
		e, readable := entries[i], true
		switch {
		case e.APIVersion == object.GetAPIVersion() && isApplied(&e, manager):
			applied = e
			mine, readable = fieldsOf(&e)
		case e.APIVersion == object.GetAPIVersion() && isWritten(&e):
			written = e
			ours, readable = fieldsOf(&e)
		default:
			rest = append(rest, e)
		}
		if !readable {
			return nil, false
		}
	}
	reference := ownerField(owner)
	owns, content := mine.Has(reference), withoutOwners(ours)
	adopt = adopt && !content.Empty()
	if !owns && !adopt {
		return nil, false
	}
	if owns {
		mine = mine.RecursiveDifference(fieldpath.NewSet(reference))
		if list := fieldpath.NewSet(ownersField()); mine.Difference(withoutOwners(mine)).Equals(list) {
			mine = mine.Difference(list) // the list without any element
		}
		ours = ours.Union(fieldpath.NewSet(ownersField(), reference))
	}
	if adopt {
		mine, ours = mine.Union(content), ours.RecursiveDifference(content)
	}
	return appendFields(appendFields(rest, object, applied, mine), object, written, ours), true
}

// ownersField is the list of owner references, and ownerField the one with a UID.
func ownersField() fieldpath.Path { return fieldpath.MakePathOrDie("metadata", "ownerReferences") }

func ownerField(uid types.UID) fieldpath.Path {
	return append(ownersField(), fieldpath.KeyElementByFields("uid", string(uid)))
}

// withoutOwners returns the fields of a set except the owner references.
func withoutOwners(set *fieldpath.Set) *fieldpath.Set {
	return set.RecursiveDifference(fieldpath.NewSet(ownersField()))
}

// appendFields appends an entry with the fields, if there are any.
func appendFields(list []metav1.ManagedFieldsEntry, object *unstructured.Unstructured, entry metav1.ManagedFieldsEntry,
	fields *fieldpath.Set,
) []metav1.ManagedFieldsEntry {
	if fields.Empty() {
		return list
	}
	raw, _ := fields.ToJSON() // a set that was read can be written
	entry.APIVersion, entry.FieldsType = object.GetAPIVersion(), "FieldsV1"
	entry.FieldsV1 = metav1.NewFieldsV1(string(raw))
	return append(list, entry)
}
