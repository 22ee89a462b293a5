package ssa

import (
	"bytes"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/value"

	"github.com/spokelet/spokelet/agent/work/apply/content"
	"github.com/spokelet/spokelet/internal/names"
)

// fieldsOf returns the fields of an entry of the managed fields, and false when they cannot be read.
func fieldsOf(entry *metav1.ManagedFieldsEntry) (*fieldpath.Set, bool) {
	set := &fieldpath.Set{}
	if entry.FieldsV1 == nil || set.FromJSON(bytes.NewReader(entry.FieldsV1.GetRawBytes())) != nil {
		return &fieldpath.Set{}, false
	}
	return set, true
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

// ownership has the fields that a manager applied to an object, or to a part of it, and the fields of all others.
type ownership struct{ mine, others *fieldpath.Set }

// below is the ownership of what is below an element, and whether others have the element or anything below it.
func (o ownership) below(element fieldpath.PathElement) (ownership, bool) {
	mine, _ := below(o.mine, element)
	others, shared := below(o.others, element)
	return ownership{mine, others}, shared
}

// owned returns the ownership of an object. applied is false when the manager applied nothing in this API version.
func owned(object *unstructured.Unstructured, manager string) (o ownership, applied bool) {
	o = ownership{&fieldpath.Set{}, &fieldpath.Set{}}
	entries := object.GetManagedFields()
	for i := range entries {
		fields, readable := fieldsOf(&entries[i])
		switch {
		case !isApplied(&entries[i], manager):
			o.others = o.others.Union(fields)
		case entries[i].APIVersion == object.GetAPIVersion():
			o.mine, applied = fields, readable
		}
	}
	return o, applied
}

// elements returns the fields and list elements that a set has directly below its root, in order.
func elements(set *fieldpath.Set) []fieldpath.PathElement {
	all := set.Members.Copy()
	for element := range set.Children.All() {
		all.Insert(element)
	}
	return slices.Collect(all.All())
}

// below returns what a set has below an element, and whether it has the element or anything below it. The set below is
// empty when the element is owned as a whole.
func below(set *fieldpath.Set, element fieldpath.PathElement) (*fieldpath.Set, bool) {
	if inner, deeper := set.Children.Get(element); deeper {
		return inner, true
	}
	return &fieldpath.Set{}, set.Members.Has(element)
}

// nameOf returns the field that an element names; empty when it is an element of a list.
func nameOf(element fieldpath.PathElement) string {
	if element.FieldName == nil {
		return ""
	}
	return *element.FieldName
}

// is reports whether an item of a list is the one that an element names. An item of a manifest may lack fields of the
// key, because the API server fills them in; then lenient is set.
func is(item any, element fieldpath.PathElement, lenient bool) bool {
	if element.Value != nil {
		return value.Equals(value.NewValueInterface(item), *element.Value)
	}
	have, isMap := item.(map[string]any)
	if element.Key == nil || !isMap {
		return false
	}
	for _, field := range *element.Key {
		got, set := have[field.Name]
		if !value.Equals(value.NewValueInterface(got), field.Value) && (set || !lenient) {
			return false
		}
	}
	return true
}

// locate returns the item that an element names, and its index; -1 when the list has none.
func locate(list []any, element fieldpath.PathElement, lenient bool) (any, int) {
	for i, item := range list {
		if is(item, element, lenient) {
			return item, i
		}
	}
	return nil, -1
}

// common returns the part of a live value that the set has and that wanted sets. It changes when a user changes or
// takes over any of that, and not otherwise.
func common(live, wanted any, set *fieldpath.Set) any {
	if set.Empty() {
		if content.Empty(wanted) {
			return live != nil
		}
		return live
	}
	switch wanted := wanted.(type) {
	case map[string]any:
		have, _ := live.(map[string]any)
		part := map[string]any{}
		for name, want := range wanted {
			inner, mine := below(set, fieldpath.FieldNameElement(name))
			if got, exists := have[name]; mine && exists {
				part[name] = common(got, want, inner)
			}
		}
		return part
	case []any:
		have, _ := live.([]any)
		part := []any{}
		for _, element := range elements(set) {
			want, at := locate(wanted, element, true)
			if got, there := locate(have, element, false); at >= 0 && there >= 0 {
				inner, _ := below(set, element)
				part = append(part, element.String(), common(got, want, inner))
			}
		}
		return part
	}
	return live
}

// inForce reports whether the live value is as wanted and the set has all of it. A field that the set has beyond wanted
// must at least be in full; otherwise it is still to be removed.
func inForce(live, wanted, full any, set *fieldpath.Set) bool {
	if set.Empty() {
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
func mapInForce(live, wanted map[string]any, full any, set *fieldpath.Set) bool {
	all, _ := full.(map[string]any)
	for name, want := range wanted {
		inner, mine := below(set, fieldpath.FieldNameElement(name))
		switch {
		case want == nil:
		case !mine, !inForce(live[name], want, all[name], inner):
			return false
		}
	}
	for _, element := range elements(set) {
		_, now := wanted[nameOf(element)]
		if _, ever := all[nameOf(element)]; !now && !ever {
			return false
		}
	}
	return true
}

// listInForce is inForce for a list whose elements have owners one by one.
func listInForce(live, wanted []any, full any, set *fieldpath.Set) bool {
	all, _ := full.([]any)
	found := 0
	for _, element := range elements(set) {
		want, at := locate(wanted, element, true)
		whole, ever := locate(all, element, true)
		switch {
		case at >= 0:
			inner, _ := below(set, element)
			got, there := locate(live, element, false)
			if there < 0 || !inForce(got, want, whole, inner) {
				return false
			}
			found++
		case ever < 0:
			return false
		}
	}
	return found == len(wanted)
}

// retain returns base with, at their live values, those fields of full that base lacks and that only the manager has:
// a configuration without them would remove them from the object. It reports whether there was any such field.
func retain(live, base, full any, o ownership) (any, bool) {
	some := false
	switch full := full.(type) {
	case map[string]any:
		have, _ := live.(map[string]any)
		kept, _ := base.(map[string]any)
		if kept == nil {
			return base, false
		}
		for _, element := range elements(o.mine) {
			name := nameOf(element)
			got, exists := have[name]
			if _, ever := full[name]; !ever || !exists {
				continue
			}
			inner, shared := o.below(element)
			if keeps, now := kept[name]; now {
				more, added := retain(got, keeps, full[name], inner)
				kept[name], some = more, some || added
			} else if more, alone := sole(got, element, inner, shared); alone {
				kept[name], some = more, true
			}
		}
		return kept, some
	case []any:
		return retainItems(live, base, full, o)
	}
	return base, false
}

// retainItems is retain for a list whose elements have owners one by one.
func retainItems(live, base any, full []any, o ownership) (any, bool) {
	have, _ := live.([]any)
	kept, ok := base.([]any)
	if !ok {
		return base, false
	}
	some := false
	for _, element := range elements(o.mine) {
		whole, ever := locate(full, element, true)
		got, exists := locate(have, element, false)
		if ever < 0 || exists < 0 {
			continue
		}
		inner, shared := o.below(element)
		if keeps, at := locate(kept, element, true); at >= 0 {
			more, added := retain(got, keeps, whole, inner)
			kept[at], some = more, some || added
		} else if more, alone := sole(got, element, inner, shared); alone {
			kept, some = append(kept, more), true
		}
	}
	return kept, some
}

// sole returns the part of a live value, which is that of an element, that the manager has and nobody else. It reports
// whether there is any. The others share the element when they have it or anything below it.
func sole(live any, element fieldpath.PathElement, o ownership, shared bool) (any, bool) {
	if !shared {
		return project(live, o.mine), true
	}
	switch live := live.(type) {
	case map[string]any:
		part := map[string]any{}
		for _, inner := range elements(o.mine) {
			deeper, both := o.below(inner)
			got := live[nameOf(inner)]
			if more, some := sole(got, inner, deeper, both); some && got != nil {
				part[nameOf(inner)] = more
			}
		}
		if len(part) == 0 {
			return nil, false
		}
		// An element of a list is found by its key, no matter who else has the fields of the key.
		if element.Key != nil {
			for _, field := range *element.Key {
				part[field.Name] = live[field.Name]
			}
		}
		return part, true
	case []any:
		var part []any
		for _, inner := range elements(o.mine) {
			item, at := locate(live, inner, false)
			if at < 0 {
				continue
			}
			deeper, both := o.below(inner)
			if more, some := sole(item, inner, deeper, both); some {
				part = append(part, more)
			}
		}
		return part, len(part) > 0
	}
	return nil, false
}

// project returns the part of a live value that a set has.
func project(live any, set *fieldpath.Set) any {
	if set.Empty() {
		return live
	}
	switch live := live.(type) {
	case map[string]any:
		part := map[string]any{}
		for _, element := range elements(set) {
			inner, _ := below(set, element)
			if got, exists := live[nameOf(element)]; exists {
				part[nameOf(element)] = project(got, inner)
			}
		}
		return part
	case []any:
		part := []any{}
		for _, element := range elements(set) {
			inner, _ := below(set, element)
			if item, at := locate(live, element, false); at >= 0 {
				part = append(part, project(item, inner))
			}
		}
		return part
	}
	return live
}

// Part returns the part of a live value that an entry of the managed fields has. An entry that cannot be read has none.
func Part(live any, entry *metav1.ManagedFieldsEntry) any {
	fields, readable := fieldsOf(entry)
	if !readable {
		return nil
	}
	return project(live, fields)
}
