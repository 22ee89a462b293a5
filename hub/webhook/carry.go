package webhook

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kjson "sigs.k8s.io/json"

	"github.com/spokelet/spokelet/internal/names"
)

// inSpec and inStatus are the parts of an object that may contain unknown fields.
const inSpec, inStatus = "spec", "status"

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

// mayCarry reports whether the annotation may hold a field with a path. Whoever may write an annotation may write the
// spec, but not the status.
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

// pack returns a field for the annotation. known is its object without the fields that this converter does not know.
func pack(known map[string]any, f field) (carried, error) {
	one := carried{}
	var at any = known
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
			one.Path, at = append(one.Path, identify(list)[step]), list[step]
		}
	}
	value, err := json.Marshal(f.value)
	if err != nil {
		return carried{}, fmt.Errorf("encoding %v: %w", f.path, err)
	}
	one.Value = value
	return one, nil
}

// unpack restores fields in an object, and returns those whose place is gone.
func unpack(object map[string]any, fields []carried) []carried {
	if len(fields) == 0 {
		return nil
	}
	before := (&unstructured.Unstructured{Object: object}).DeepCopy().Object
	return slices.DeleteFunc(slices.Clone(fields), func(one carried) bool {
		return mayCarry(one.Path) && place(object, before, one)
	})
}

// place sets one field unless the object has a value there, and reports whether its place exists. before is the object
// without any restored field, from which the hashes were computed.
func place(object, before map[string]any, one carried) bool {
	var value any
	var at, was any = object, before
	if kjson.UnmarshalCaseSensitivePreserveInts(one.Value, &value) != nil {
		return false
	}
	for i, step := range one.Path {
		switch typed := at.(type) {
		case map[string]any:
			if i == len(one.Path)-1 {
				if isEmpty(typed[step]) {
					typed[step] = value
				}
				return true
			}
			if _, there := typed[step]; !there && !strings.HasPrefix(one.Path[i+1], "#") {
				typed[step] = map[string]any{}
			}
			at = typed[step]
			wasObject, _ := was.(map[string]any)
			was = wasObject[step]
		case []any:
			elements, _ := was.([]any)
			found := slices.Index(identify(elements), step)
			if found < 0 || found >= len(typed) {
				return false
			}
			at, was = typed[found], elements[found]
		default:
			return false
		}
	}
	return false
}

// isEmpty reports whether a value is what the conversion makes of a field that it does not know.
func isEmpty(value any) bool {
	switch typed := value.(type) {
	case map[string]any:
		for _, element := range typed {
			if !isEmpty(element) {
				return false
			}
		}
		return true
	case []any:
		return len(typed) == 0
	case nil:
		return true
	}
	return reflect.ValueOf(value).IsZero()
}

// identify returns the steps of the elements of a list: by their known fields, and by their order among equal ones.
func identify(list []any) []string {
	steps, seen := make([]string, 0, len(list)), map[string]int{}
	for _, element := range list {
		step := "#" + hash(element)
		if n := seen[step]; n > 0 {
			steps = append(steps, step+"~"+strconv.Itoa(n))
		} else {
			steps = append(steps, step)
		}
		seen[step]++
	}
	return steps
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

// takeCarried removes the carried fields from the annotations of an object and returns them. An invalid annotation
// stays.
func takeCarried(object map[string]any) carriedFields {
	annotations, _, err := unstructured.NestedMap(object, "metadata", "annotations")
	if err != nil {
		return carriedFields{}
	}
	text, _ := annotations[names.AnnotationCarried].(string)
	p := carriedFields{}
	if text == "" || json.Unmarshal([]byte(text), &p) != nil {
		return carriedFields{}
	}
	unstructured.RemoveNestedField(object, "metadata", "annotations", names.AnnotationCarried)
	if len(annotations) == 1 {
		unstructured.RemoveNestedField(object, "metadata", "annotations")
	}
	return p
}

// putCarried writes carried fields to the annotations of an object.
func putCarried(object map[string]any, p carriedFields) error {
	for version, fields := range p {
		if len(fields) == 0 {
			delete(p, version)
		}
	}
	if len(p) == 0 {
		return nil
	}
	text, err := json.Marshal(p)
	if err != nil {
		return fmt.Errorf("encoding what is carried: %w", err)
	}
	err = unstructured.SetNestedField(object, string(text), "metadata", "annotations", names.AnnotationCarried)
	if err != nil {
		return fmt.Errorf("writing the annotation %s: %w", names.AnnotationCarried, err)
	}
	return nil
}
