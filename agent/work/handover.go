package work

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/spokelet/spokelet/internal/names"
)

const (
	keyMetadata = "f:metadata"
	keyOwners   = "f:ownerReferences"
)

// handOver puts an object's managed fields right for server-side apply and tells whether that changes them. The owner
// reference of the work is held by this agent, not by the manager that applies: otherwise the next applied
// configuration, which has no owner, would remove it. With adopt, the content that this agent wrote under another
// strategy is from now on what the manager applied: otherwise the agent would be in conflict with itself, and a field
// that leaves the manifest would stay (work contract, section 9.2).
func handOver(object *unstructured.Unstructured, manager string, owner types.UID, adopt bool,
) ([]metav1.ManagedFieldsEntry, bool) {
	entries := object.GetManagedFields()
	version := object.GetAPIVersion()
	applied := slices.IndexFunc(entries, func(e metav1.ManagedFieldsEntry) bool {
		return isApplied(&e, manager) && e.APIVersion == version
	})
	written := slices.IndexFunc(entries, func(e metav1.ManagedFieldsEntry) bool {
		return isWritten(&e) && e.APIVersion == version
	})
	mine, ours := fieldSet{}, fieldSet{}
	if applied >= 0 {
		mine = fieldsOf(&entries[applied])
	}
	if written >= 0 {
		ours = fieldsOf(&entries[written])
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
		ours = fieldSet{keyMetadata: {keyOwners: ours[keyMetadata][keyOwners]}}
		if len(ours[keyMetadata][keyOwners]) == 0 {
			ours = nil
		}
	}
	if applied < 0 {
		applied = len(entries)
		entries = append(entries, entryLike(entries[written], manager, metav1.ManagedFieldsOperationApply))
	}
	if written < 0 {
		written = len(entries)
		entries = append(entries, entryLike(entries[applied], names.FieldManagerWork, metav1.ManagedFieldsOperationUpdate))
	}
	entries[applied].FieldsV1, entries[written].FieldsV1 = mine.encode(), ours.encode()
	return slices.DeleteFunc(entries, func(e metav1.ManagedFieldsEntry) bool { return e.FieldsV1 == nil }), true
}

// entryLike is an entry without fields of another manager, of the version and time of a given one.
func entryLike(like metav1.ManagedFieldsEntry, manager string, operation metav1.ManagedFieldsOperationType,
) metav1.ManagedFieldsEntry {
	like.Manager, like.Operation, like.FieldsV1 = manager, operation, nil
	return like
}

// encode returns the set as an entry has it, nil when it is empty.
func (s fieldSet) encode() *metav1.FieldsV1 {
	if len(s) == 0 {
		return nil
	}
	raw, _ := json.Marshal(s)
	return &metav1.FieldsV1{Raw: raw}
}

// without returns a copy of the set that lacks the field with the path, and what is empty without it.
func (s fieldSet) without(path ...string) fieldSet {
	rest := make(fieldSet, len(s))
	for key, inner := range s {
		if key != path[0] {
			rest[key] = inner
		}
	}
	if inner, has := s[path[0]]; has && len(path) > 1 {
		if inner = inner.without(path[1:]...); len(inner.members()) > 0 {
			rest[path[0]] = inner
		}
	}
	return rest
}

// setManagers writes the managed fields of a live object, guarded by its UID and resourceVersion.
func (a *applier) setManagers(ctx context.Context, t *task, live *unstructured.Unstructured,
	entries []metav1.ManagedFieldsEntry,
) (*unstructured.Unstructured, error) {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid": live.GetUID(), "resourceVersion": live.GetResourceVersion(), "managedFields": entries,
	}})
	if err != nil {
		return live, fmt.Errorf("encoding the managers of %s: %w", t.id(), err)
	}
	handed, err := a.spoke.at(t.resource, t.id()).Patch(ctx, t.name, types.MergePatchType, patch,
		metav1.PatchOptions{FieldManager: names.FieldManagerWork})
	if err != nil {
		return live, fmt.Errorf("setting the managers of %s: %w", t.id(), err)
	}
	return handed, nil
}
