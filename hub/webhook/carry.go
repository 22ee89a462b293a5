package webhook

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kjson "sigs.k8s.io/json"

	"github.com/spokelet/spokelet/internal/names"
)

// carried is a field of one version that this converter does not know. An annotation keeps it until the object is
// converted back to that version.
type carried struct {
	// Path is the path of the field. An element of a list is # and a hash of its known fields, because the other version
	// may move it.
	Path []string `json:"path"`
	// Value is the value of the field.
	Value json.RawMessage `json:"value"`
}

// carriedFields is the content of the annotation, by the version of the fields.
type carriedFields map[string][]carried

// steps matches the path of a field as the decoder writes it: spec.configs[0].later.
var steps = regexp.MustCompile(`^(?:[^.\[\]]+(?:\[\d+\])*)(?:\.[^.\[\]]+(?:\[\d+\])*)*$`)

// pathOf returns the steps of a path.
func pathOf(path string) ([]string, bool) {
	if !steps.MatchString(path) {
		return nil, false
	}
	return strings.FieldsFunc(path, func(r rune) bool { return r == '.' || r == '[' || r == ']' }), true
}

// inSpec and inStatus are the parts of an object that may contain unknown fields.
const inSpec, inStatus = "spec", "status"

// pack returns the unknown fields of an object. known is the same object without them. A field in a list of the status
// is an error.
func pack(raw, known map[string]any, fields []string) ([]carried, error) {
	var all []carried
	for _, field := range fields {
		path, ok := pathOf(field)
		if !ok || len(path) < 2 || (path[0] != inSpec && path[0] != inStatus) {
			return nil, fmt.Errorf("%q cannot be carried", field)
		}
		if path[0] == inStatus && strings.Contains(field, "[") {
			return nil, fmt.Errorf("%q is in a list of the status", field)
		}
		one := carried{}
		var at, knownAt any = raw, known
		for _, step := range path {
			next, ok := child(at, step)
			if !ok {
				return nil, fmt.Errorf("%q is not found", field)
			}
			knownNext, _ := child(knownAt, step)
			if _, isList := at.([]any); isList {
				step = "#" + hash(knownNext)
			}
			one.Path, at, knownAt = append(one.Path, step), next, knownNext
		}
		value, err := json.Marshal(at)
		if err != nil {
			return nil, fmt.Errorf("encoding %s: %w", field, err)
		}
		one.Value = value
		all = append(all, one)
	}
	return all, nil
}

// child returns the field of an object or the element of a list.
func child(of any, step string) (any, bool) {
	switch typed := of.(type) {
	case map[string]any:
		value, ok := typed[step]
		return value, ok
	case []any:
		i, err := strconv.Atoi(step)
		if err != nil || i >= len(typed) {
			return nil, false
		}
		return typed[i], true
	}
	return nil, false
}

// unpack restores fields in an object, and returns those whose place is gone.
func unpack(object map[string]any, fields []carried) []carried {
	before := (&unstructured.Unstructured{Object: object}).DeepCopy().Object
	return slices.DeleteFunc(slices.Clone(fields), func(one carried) bool { return putBack(object, before, one) })
}

// putBack restores one field of the spec, and reports whether its place exists. before is the object without any
// restored field, from which the hashes were computed.
func putBack(object, before map[string]any, one carried) bool {
	if len(one.Path) < 2 || one.Path[0] != inSpec {
		return false
	}
	return place(object, before, one)
}

// place sets one field, and reports whether its place exists.
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
				if _, there := typed[step]; !there {
					typed[step] = value
				}
				return true
			}
			if _, there := typed[step]; !there && !strings.HasPrefix(one.Path[i+1], "#") {
				typed[step] = map[string]any{}
			}
			at = typed[step]
			was, _ = child(was, step)
		case []any:
			elements, _ := was.([]any)
			found := slices.IndexFunc(elements, func(element any) bool { return step == "#"+hash(element) })
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

// hash identifies an element of a list by its known fields.
func hash(element any) string {
	raw, err := json.Marshal(element)
	if err != nil {
		return ""
	}
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:8])
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
