package ssa

import (
	"encoding/json"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/spokelet/spokelet/agent/work/apply/content"
	"github.com/spokelet/spokelet/internal/names"
)

// fieldSet is a set of fields as metadata.managedFields writes it: f:<name> is a member of a map, k:<keys> and
// v:<value> are elements of a list, a dot is the thing itself. A set without members is a whole value.
type fieldSet map[string]fieldSet

// whole reports whether the set means a value as a whole.
func (s fieldSet) whole() bool { return len(s) == 0 }

// members returns the keys of the set that are not the thing itself, sorted.
func (s fieldSet) members() []string {
	keys := make([]string, 0, len(s))
	for key := range s {
		if key != "." {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	return keys
}

// union returns a set with the fields of both.
func (s fieldSet) union(other fieldSet) fieldSet {
	all := make(fieldSet, len(s)+len(other))
	for key, inner := range s {
		all[key] = inner
	}
	for key, inner := range other {
		have, both := all[key]
		if !both {
			all[key] = inner
			continue
		}
		all[key] = have.union(inner)
	}
	return all
}

// fieldsOf returns the fields of an entry; nil when they cannot be read.
func fieldsOf(entry *metav1.ManagedFieldsEntry) fieldSet {
	if entry.FieldsV1 == nil {
		return nil
	}
	fields := fieldSet{}
	if json.Unmarshal(entry.FieldsV1.Raw, &fields) != nil {
		return nil
	}
	return fields
}

// isApplied reports whether an entry has the fields that a manager applied (server-side apply).
func isApplied(entry *metav1.ManagedFieldsEntry, manager string) bool {
	return entry.Manager == manager && entry.Operation == metav1.ManagedFieldsOperationApply && entry.Subresource == ""
}

// isWritten reports whether an entry has the fields that this agent wrote in other ways than server-side apply.
func isWritten(entry *metav1.ManagedFieldsEntry) bool {
	return entry.Manager == names.FieldManagerWork && entry.Operation == metav1.ManagedFieldsOperationUpdate &&
		entry.Subresource == ""
}

// managers returns what the manager applied to the object and what all others hold of it. mine is nil when the manager
// applied nothing in this API version.
func managers(object *unstructured.Unstructured, manager string) (mine, others fieldSet) {
	entries := object.GetManagedFields()
	for i := range entries {
		fields := fieldsOf(&entries[i])
		switch {
		case !isApplied(&entries[i], manager):
			others = others.union(fields)
		case entries[i].APIVersion == object.GetAPIVersion():
			mine = fields
		}
	}
	return mine, others
}

// member returns the field that a key of a set names.
func member(key string) (string, bool) { return strings.CutPrefix(key, "f:") }

// element reports whether an item of a list is the one that a key of a set names. Of an item that comes from a
// manifest, fields of the key may be missing, because the API server fills them in.
func element(key string, item any, lenient bool) bool {
	if text, ok := strings.CutPrefix(key, "v:"); ok {
		var value any
		return utiljson.Unmarshal([]byte(text), &value) == nil && content.SameValue(item, value)
	}
	text, ok := strings.CutPrefix(key, "k:")
	if !ok {
		return false
	}
	keys := map[string]any{}
	have, isMap := item.(map[string]any)
	if !isMap || utiljson.Unmarshal([]byte(text), &keys) != nil {
		return false
	}
	for name, value := range keys {
		if got, set := have[name]; !content.SameValue(got, value) && (set || !lenient) {
			return false
		}
	}
	return true
}

// locate returns the item that a key of a set names, and its place; -1 when the list has none.
func locate(key string, list []any, lenient bool) (any, int) {
	for i, item := range list {
		if element(key, item, lenient) {
			return item, i
		}
	}
	return nil, -1
}

// held returns the part of a live value that wanted speaks of and the set has. It changes when somebody changes or
// takes over any of that, and not otherwise.
func held(live, wanted any, set fieldSet) any {
	if set.whole() {
		if content.Empty(wanted) {
			return live != nil
		}
		return live
	}
	switch wanted := wanted.(type) {
	case map[string]any:
		have, _ := live.(map[string]any)
		part := map[string]any{}
		for name, value := range wanted {
			inner, mine := set["f:"+name]
			if got, exists := have[name]; mine && exists {
				part[name] = held(got, value, inner)
			}
		}
		return part
	case []any:
		have, _ := live.([]any)
		part := []any{}
		for _, key := range set.members() {
			value, at := locate(key, wanted, true)
			if got, there := locate(key, have, false); at >= 0 && there >= 0 {
				part = append(part, key, held(got, value, set[key]))
			}
		}
		return part
	}
	return live
}

// inForce reports whether the live value is as wanted and the set holds all of that. What the set holds beyond it must
// at least be in full, otherwise it is still to be given up.
func inForce(live, wanted, full any, set fieldSet) bool {
	if set.whole() {
		return content.Resembles(live, wanted) && (live != nil || wanted == nil)
	}
	switch wanted := wanted.(type) {
	case map[string]any:
		have, ok := live.(map[string]any)
		return ok && mapInForce(have, wanted, full, set)
	case []any:
		have, ok := live.([]any)
		return ok && listInForce(have, wanted, full, set)
	}
	return false
}

// mapInForce is inForce for a map.
func mapInForce(live, wanted map[string]any, full any, set fieldSet) bool {
	all, _ := full.(map[string]any)
	for name, value := range wanted {
		inner, mine := set["f:"+name]
		switch {
		case value == nil:
		case !mine, !inForce(live[name], value, all[name], inner):
			return false
		}
	}
	for _, key := range set.members() {
		name, _ := member(key)
		_, now := wanted[name]
		if _, ever := all[name]; !now && !ever {
			return false
		}
	}
	return true
}

// listInForce is inForce for a list whose elements are held one by one.
func listInForce(live, wanted []any, full any, set fieldSet) bool {
	all, _ := full.([]any)
	found := 0
	for _, key := range set.members() {
		value, at := locate(key, wanted, true)
		whole, ever := locate(key, all, true)
		switch {
		case at >= 0:
			got, there := locate(key, live, false)
			if there < 0 || !inForce(got, value, whole, set[key]) {
				return false
			}
			found++
		case ever < 0:
			return false
		}
	}
	return found == len(wanted)
}

// retain returns base and, with their live values, those fields of full which base lacks and which only the set mine
// holds: to leave them out of an applied configuration would remove them from the object. It reports whether there was
// any such field.
func retain(live, base, full any, mine, others fieldSet) (any, bool) {
	some := false
	switch full := full.(type) {
	case map[string]any:
		have, _ := live.(map[string]any)
		kept, _ := base.(map[string]any)
		if kept == nil {
			return base, false
		}
		for _, key := range mine.members() {
			name, _ := member(key)
			got, exists := have[name]
			if _, ever := full[name]; !ever || !exists {
				continue
			}
			if value, now := kept[name]; now {
				more, added := retain(got, value, full[name], mine[key], others[key])
				kept[name], some = more, some || added
			} else if value, alone := sole(got, mine[key], others, key); alone {
				kept[name], some = value, true
			}
		}
		return kept, some
	case []any:
		return retainItems(live, base, full, mine, others)
	}
	return base, false
}

// retainItems is retain for a list whose elements are held one by one.
func retainItems(live, base any, full []any, mine, others fieldSet) (any, bool) {
	have, _ := live.([]any)
	kept, ok := base.([]any)
	if !ok {
		return base, false
	}
	some := false
	for _, key := range mine.members() {
		whole, ever := locate(key, full, true)
		got, exists := locate(key, have, false)
		if ever < 0 || exists < 0 {
			continue
		}
		if value, at := locate(key, kept, true); at >= 0 {
			more, added := retain(got, value, whole, mine[key], others[key])
			kept[at], some = more, some || added
		} else if value, alone := sole(got, mine[key], others, key); alone {
			kept, some = append(kept, value), true
		}
	}
	return kept, some
}

// sole returns the part of a live value that the set mine holds and nobody else, whose fields are others[key], and
// reports whether there is any.
func sole(live any, mine, others fieldSet, key string) (any, bool) {
	theirs, shared := others[key]
	if !shared {
		return project(live, mine), true
	}
	switch live := live.(type) {
	case map[string]any:
		part := map[string]any{}
		for _, inner := range mine.members() {
			name, _ := member(inner)
			if value, some := sole(live[name], mine[inner], theirs, inner); some && live[name] != nil {
				part[name] = value
			}
		}
		if len(part) == 0 {
			return nil, false
		}
		// An element of a list is found by its keys, whoever else holds them.
		if text, ok := strings.CutPrefix(key, "k:"); ok {
			_ = utiljson.Unmarshal([]byte(text), &part)
		}
		return part, true
	case []any:
		var part []any
		for _, inner := range mine.members() {
			if item, at := locate(inner, live, false); at >= 0 {
				if value, some := sole(item, mine[inner], theirs, inner); some {
					part = append(part, value)
				}
			}
		}
		return part, len(part) > 0
	}
	return nil, false
}

// project returns the part of a live value that a set has.
func project(live any, set fieldSet) any {
	if set.whole() {
		return live
	}
	switch live := live.(type) {
	case map[string]any:
		part := map[string]any{}
		for _, key := range set.members() {
			name, _ := member(key)
			if value, exists := live[name]; exists {
				part[name] = project(value, set[key])
			}
		}
		return part
	case []any:
		part := []any{}
		for _, key := range set.members() {
			if item, at := locate(key, live, false); at >= 0 {
				part = append(part, project(item, set[key]))
			}
		}
		return part
	}
	return live
}

// Part returns the part of a value that an entry of the managed fields has.
func Part(value any, entry *metav1.ManagedFieldsEntry) any { return project(value, fieldsOf(entry)) }
