package ssa

import (
	"encoding/json"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/spokelet/spokelet/internal/names"
)

const (
	keyMetadata = "f:metadata"
	keyOwners   = "f:ownerReferences"
)

// HandOver puts an object's managed fields right for server-side apply and reports whether that changes them. The owner
// reference of the work is held by this agent, not by the manager that applies: otherwise the next applied
// configuration, which has no owner, would remove it. With adopt, the content that this agent wrote under another
// strategy is from now on what the manager applied: otherwise the agent would be in conflict with itself, and a field
// that leaves the manifest would stay (work contract, section 9.2).
func HandOver(object *unstructured.Unstructured, manager string, owner types.UID, adopt bool,
) ([]metav1.ManagedFieldsEntry, bool) {
	var rest []metav1.ManagedFieldsEntry
	applied := metav1.ManagedFieldsEntry{Manager: manager, Operation: metav1.ManagedFieldsOperationApply}
	written := metav1.ManagedFieldsEntry{
		Manager: names.FieldManagerWork, Operation: metav1.ManagedFieldsOperationUpdate,
	}
	mine, ours := fieldSet{}, fieldSet{}
	entries := object.GetManagedFields()
	for i := range entries {
		switch e := entries[i]; {
		case e.APIVersion == object.GetAPIVersion() && isApplied(&e, manager):
			applied, mine = e, fieldsOf(&e)
		case e.APIVersion == object.GetAPIVersion() && isWritten(&e):
			written, ours = e, fieldsOf(&e)
		default:
			rest = append(rest, e)
		}
	}
	if mine == nil || ours == nil {
		return nil, false
	}
	key := `k:{"uid":"` + string(owner) + `"}`
	refs, held := mine[keyMetadata][keyOwners][key]
	content := ours.without(keyMetadata, keyOwners)
	adopt = adopt && len(content) > 0
	if !held && !adopt {
		return nil, false
	}
	if held {
		mine = mine.without(keyMetadata, keyOwners, key)
		ours = ours.union(fieldSet{keyMetadata: {keyOwners: {".": {}, key: refs}}})
	}
	if adopt {
		mine = mine.union(content)
		owners := ours[keyMetadata][keyOwners]
		ours = nil
		if len(owners) > 0 {
			ours = fieldSet{keyMetadata: {keyOwners: owners}}
		}
	}
	return appendFields(appendFields(rest, object, applied, mine), object, written, ours), true
}

// appendFields appends an entry with the fields, if there are any.
func appendFields(list []metav1.ManagedFieldsEntry, object *unstructured.Unstructured, entry metav1.ManagedFieldsEntry,
	fields fieldSet,
) []metav1.ManagedFieldsEntry {
	if len(fields) == 0 {
		return list
	}
	raw, _ := json.Marshal(fields)
	entry.APIVersion, entry.FieldsType = object.GetAPIVersion(), "FieldsV1"
	entry.FieldsV1 = &metav1.FieldsV1{Raw: raw}
	return append(list, entry)
}

// without returns a copy of the set that lacks the field at the end of the keys from first on, and what is empty
// without it.
func (s fieldSet) without(first string, more ...string) fieldSet {
	rest := make(fieldSet, len(s))
	for key, inner := range s {
		if key != first {
			rest[key] = inner
		}
	}
	if len(more) > 0 {
		if inner := s[first].without(more[0], more[1:]...); len(inner.members()) > 0 {
			rest[first] = inner
		}
	}
	return rest
}
