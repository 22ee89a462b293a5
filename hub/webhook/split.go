package webhook

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	kjson "sigs.k8s.io/json"
)

// head are the parts of an object that every version has.
const inMetadata, inAPIVersion, inKind = "metadata", "apiVersion", "kind"

// field is a field of an object that this converter does not know, or whose value has another type than it knows.
type field struct {
	// path are the names of fields and the indexes of elements, as string and int.
	path  []any
	value any
}

// separate decodes an object as far as its type reaches, and returns the other fields. Only an object that no API
// server has is an error.
func separate[A any](raw []byte) (*A, []field, error) {
	var object map[string]any
	if err := kjson.UnmarshalCaseSensitivePreserveInts(raw, &object); err != nil {
		return nil, nil, fmt.Errorf("decoding it: %w", err)
	}
	if err := checkParts(object); err != nil {
		return nil, nil, err
	}
	s := splitter{schema: schema{}}
	known, _ := s.split(object, reflect.TypeFor[A](), nil)
	encoded, err := json.Marshal(known)
	if err != nil {
		return nil, nil, fmt.Errorf("encoding what is known of it: %w", err)
	}
	in := new(A)
	if err := kjson.UnmarshalCaseSensitivePreserveInts(encoded, in); err != nil {
		return nil, nil, fmt.Errorf("decoding what is known of it: %w", err)
	}
	return in, s.rest, nil
}

// checkParts refuses an object whose parts are no objects, or have names that differ only in case from those of parts.
func checkParts(object map[string]any) error {
	for _, part := range []string{inMetadata, inSpec, inStatus, inAPIVersion, inKind} {
		for name, value := range object {
			_, isObject := value.(map[string]any)
			switch {
			case name != part && strings.EqualFold(name, part):
				return fmt.Errorf("unknown field %q; its name is %q", name, part)
			case name == part && part != inAPIVersion && part != inKind && value != nil && !isObject:
				return fmt.Errorf("its %s is no object", part)
			}
		}
	}
	return nil
}

// splitter collects the fields that a type does not have, or has with another type.
type splitter struct {
	schema schema
	rest   []field
	// keep leaves fields that the type does not have where they are.
	keep bool
}

// split returns the part of a decoded value that a type has. It returns false if nothing of the value fits.
func (s *splitter) split(value any, t reflect.Type, path []any) (any, bool) {
	t = target(t)
	if value == nil {
		return nil, true
	}
	leaf := t.Kind() != reflect.Struct && t.Kind() != reflect.Map && t.Kind() != reflect.Slice
	bytes := t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Uint8
	if leaf || bytes || opaque(t) {
		return value, decodes(value, t)
	}
	if t.Kind() == reflect.Slice {
		return s.splitList(value, t, path)
	}
	object, ok := value.(map[string]any)
	if !ok {
		return nil, false
	}
	var fields map[string]reflect.Type
	if t.Kind() == reflect.Struct {
		fields = s.schema.fields(t)
	}
	known := make(map[string]any, len(object))
	for _, name := range slices.Sorted(maps.Keys(object)) {
		element := object[name]
		at, has := fields[name]
		if t.Kind() == reflect.Map {
			at, has = t.Elem(), true
		}
		if !has && s.keep {
			known[name] = element
			continue
		}
		if has {
			if part, fits := s.split(element, at, step(path, name)); fits {
				known[name] = part
				continue
			}
		}
		s.rest = append(s.rest, field{path: step(path, name), value: element})
	}
	return known, true
}

// splitList splits the elements of a list. A list with an element that does not fit at all does not fit, because a list
// without it would have other indexes.
func (s *splitter) splitList(value any, t reflect.Type, path []any) (any, bool) {
	list, ok := value.([]any)
	if !ok {
		return nil, false
	}
	known, before := make([]any, 0, len(list)), len(s.rest)
	for i, element := range list {
		part, fits := s.split(element, t.Elem(), step(path, i))
		if !fits {
			s.rest = s.rest[:before]
			return nil, false
		}
		known = append(known, part)
	}
	return known, true
}

func step(path []any, next any) []any { return append(slices.Clone(path), next) }

// decodes reports whether a value can be decoded into a type.
func decodes(value any, t reflect.Type) bool {
	raw, err := json.Marshal(value)
	return err == nil && kjson.UnmarshalCaseSensitivePreserveInts(raw, reflect.New(t).Interface()) == nil
}
