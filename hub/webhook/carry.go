package webhook

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kjson "sigs.k8s.io/json"

	"github.com/spokelet/spokelet/internal/names"
)

const (
	// inSpec and inStatus are the parts of an object that may contain unknown fields.
	inSpec, inStatus = "spec", "status"

	// maxCarried and maxCarriedSize bound what the annotation of one object carries: the number of fields, and the bytes
	// of the annotation. A larger annotation is not read, and what exceeds the bounds is dropped: an error would fail the
	// list of all objects.
	maxCarried, maxCarriedSize = 256, 16 << 10
)

// carried is a field of one version that this converter does not know. An annotation keeps it until the object is
// converted back to that version.
type carried struct {
	// Path is the path of the field. An element of a list is # and a hash of its known fields, because the other version
	// may move it; ~ and a number follow if earlier elements have the same hash.
	Path []string `json:"path"`
	// Value is the value of the field.
	Value json.RawMessage `json:"value"`
}

// carriedFields is the content of the annotation, by the version of the fields.
type carriedFields map[string][]carried

// mayCarry reports whether the annotation may hold a field with a path. A user who may write an annotation may write
// the spec, but not the status.
func mayCarry(path []string) bool {
	if len(path) == 0 {
		return false
	}
	switch path[0] {
	case inStatus, inMetadata, inAPIVersion, inKind:
		return false
	case inSpec:
		return len(path) > 1
	}
	return true
}

// packer prepares fields for the annotation.
type packer struct {
	// known is the object without the fields that this converter does not know.
	known map[string]any
	lists lists
}

// pack returns a field for the annotation.
func (p *packer) pack(f field) (carried, error) {
	one := carried{}
	var at any = p.known
	for _, step := range f.path {
		switch step := step.(type) {
		case string:
			object, _ := at.(map[string]any)
			one.Path, at = append(one.Path, step), object[step]
		case int:
			list, _ := at.([]any)
			if step >= len(list) {
				return carried{}, fmt.Errorf("element %d of %v is not found", step, f.path)
			}
			one.Path, at = append(one.Path, p.lists.of(list).steps[step]), list[step]
		}
	}
	value, err := json.Marshal(f.value)
	if err != nil {
		return carried{}, fmt.Errorf("encoding %v: %w", f.path, err)
	}
	one.Value = value
	return one, nil
}

// place is where a carried field belongs.
type place struct {
	object map[string]any
	name   string
	value  any
}

// unpack restores fields in an object of a type, and returns those that stay in the annotation: their place is gone, or
// the type knows a field of that name. The API server does not validate what is converted, so the annotation must not
// set what it would have validated. Elements are identified before anything changes.
func unpack(object map[string]any, t reflect.Type, fields []carried) []carried {
	l, places, left := locator{lists: lists{}, schema: schema{}}, []place(nil), []carried(nil)
	for _, one := range fields {
		if to, found := l.locate(object, t, one); found {
			places = append(places, to)
			continue
		}
		left = append(left, one)
	}
	for _, to := range places {
		if _, there := to.object[to.name]; !there {
			to.object[to.name] = to.value
		}
	}
	return left
}

// locator finds the places of fields.
type locator struct {
	lists  lists
	schema schema
}

// locate returns the place of one field in an object of a type.
func (l *locator) locate(object map[string]any, t reflect.Type, one carried) (place, bool) {
	if !mayCarry(one.Path) {
		return place{}, false
	}
	var at any = object
	for i, step := range one.Path {
		t = target(t)
		switch typed := at.(type) {
		case map[string]any:
			if t.Kind() != reflect.Struct || opaque(t) {
				return place{}, false
			}
			next, has := l.schema.field(t, step)
			if i < len(one.Path)-1 {
				at, t = typed[step], next
				if !has {
					return place{}, false
				}
				continue
			}
			to := place{object: typed, name: step}
			valid := kjson.UnmarshalCaseSensitivePreserveInts(one.Value, &to.value) == nil
			return to, valid && !has
		case []any:
			n, found := l.lists.of(typed).positions[step]
			if !found || t.Kind() != reflect.Slice {
				return place{}, false
			}
			at, t = typed[n], t.Elem()
		default:
			return place{}, false
		}
	}
	return place{}, false
}

// lists are the lists of an object whose elements were identified, by the address of their first element.
type lists map[*any]identified

// identified are the steps of the elements of a list, and the index of each.
type identified struct {
	steps     []string
	positions map[string]int
}

// of identifies the elements of a list once: by their known fields, and by their order among equal ones.
func (l lists) of(list []any) identified {
	if len(list) == 0 {
		return identified{}
	}
	if all, found := l[&list[0]]; found {
		return all
	}
	all := identified{steps: make([]string, 0, len(list)), positions: make(map[string]int, len(list))}
	seen := make(map[string]int, len(list))
	for i, element := range list {
		step := "#" + hash(element)
		n := seen[step]
		seen[step]++
		if n > 0 {
			step += "~" + strconv.Itoa(n)
		}
		all.steps = append(all.steps, step)
		all.positions[step] = i
	}
	l[&list[0]] = all
	return all
}

// hash identifies an element of a list by its known fields.
func hash(element any) string {
	raw, err := json.Marshal(element)
	if err != nil {
		return ""
	}
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:8])
}

// takeCarried removes the carried fields from the annotations of an object and returns them. An annotation that is
// invalid or too large stays.
func takeCarried(object map[string]any) carriedFields {
	annotations, _ := nested(object, inMetadata, inAnnotations).(map[string]any)
	text, _ := annotations[names.AnnotationCarried].(string)
	p := carriedFields{}
	if text == "" || len(text) > maxCarriedSize || json.Unmarshal([]byte(text), &p) != nil || p.count() > maxCarried {
		return carriedFields{}
	}
	delete(annotations, names.AnnotationCarried)
	if len(annotations) == 0 {
		unstructured.RemoveNestedField(object, inMetadata, inAnnotations)
	}
	return p
}

func (p carriedFields) count() int {
	n := 0
	for _, fields := range p {
		n += len(fields)
	}
	return n
}

// putCarried writes carried fields to the annotations of an object, as many as its bounds allow, first those of the
// version that the object came from. It returns how many it dropped.
func putCarried(object map[string]any, p carriedFields, first string) (int, error) {
	room := min(maxCarriedSize, maxAnnotations-sizeOf(object)-len(names.AnnotationCarried))
	kept, dropped := bounded(p, first, room)
	if len(kept) == 0 {
		return dropped, nil
	}
	text, err := json.Marshal(kept)
	if err != nil {
		return 0, fmt.Errorf("encoding what is carried: %w", err)
	}
	err = unstructured.SetNestedField(object, string(text), inMetadata, inAnnotations, names.AnnotationCarried)
	if err != nil {
		return 0, fmt.Errorf("writing the annotation %s: %w", names.AnnotationCarried, err)
	}
	return dropped, nil
}

// bounded returns the fields that fit, and how many do not.
func bounded(p carriedFields, first string, room int) (carriedFields, int) {
	versions := make([]string, 0, len(p))
	for version := range p {
		if version != first {
			versions = append(versions, version)
		}
	}
	slices.Sort(versions)
	kept, count, dropped := carriedFields{}, 0, 0
	room -= len("{}")
	for _, version := range slices.Insert(versions, 0, first) {
		for _, one := range p[version] {
			size := one.size()
			if len(kept[version]) == 0 {
				size += encodedSize(version) + len(`:[],`)
			}
			if count == maxCarried || size > room {
				dropped++
				continue
			}
			kept[version] = append(kept[version], one)
			room -= size
			count++
		}
	}
	return kept, dropped
}

// size returns the bytes of a field in the annotation, with a separator.
func (c carried) size() int { return encodedSize(c) + 1 }

func encodedSize(value any) int {
	raw, err := json.Marshal(value)
	if err != nil {
		return maxCarriedSize + 1
	}
	return len(raw)
}

// keep sets a field of the status or the metadata in the other version of an object, whose schema decides what becomes
// of it. A field in an element that the other version does not have goes with the element.
func keep(object map[string]any, path []any, value any) {
	var at any = object
	for i, step := range path {
		switch step := step.(type) {
		case string:
			typed, ok := at.(map[string]any)
			switch {
			case !ok:
				return
			case i == len(path)-1:
				typed[step] = merge(typed[step], value)
				return
			}
			if _, there := typed[step]; !there {
				if _, isName := path[i+1].(string); !isName {
					return
				}
				typed[step] = map[string]any{}
			}
			at = typed[step]
		case int:
			list, ok := at.([]any)
			if !ok || step < 0 || step >= len(list) {
				return
			}
			at = list[step]
		}
	}
}

// merge returns a value with the fields of another one. Of two values that are not both objects it returns the latter.
func merge(into, from any) any {
	object, ok := into.(map[string]any)
	fields, are := from.(map[string]any)
	if !ok || !are {
		return from
	}
	for name, value := range fields {
		object[name] = merge(object[name], value)
	}
	return object
}
