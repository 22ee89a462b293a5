package webhook

import (
	"encoding/json"
	"maps"
	"reflect"
	"strings"
)

// inAnnotations is the part of the metadata that conversions change.
const inAnnotations = "annotations"

// maxAnnotations is how many bytes the API server allows for all annotations of an object, keys and values. It refuses
// a converted object, and so the list that it is in, if the conversion exceeds that.
const maxAnnotations = 256 << 10

// schema remembers the fields of structs, by their names in JSON.
type schema map[reflect.Type]map[string]reflect.Type

// fields returns the types of the fields of a struct.
func (s schema) fields(t reflect.Type) map[string]reflect.Type {
	if known, found := s[t]; found {
		return known
	}
	fields := map[string]reflect.Type{}
	for i := range t.NumField() {
		f := t.Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case name == "-" || !f.IsExported():
		case name == "" && (f.Anonymous || strings.Contains(options, "inline")):
			maps.Copy(fields, s.fields(f.Type))
		case name == "":
			fields[f.Name] = f.Type
		default:
			fields[name] = f.Type
		}
	}
	s[t] = fields
	return fields
}

// field returns the type of a field, and whether the struct has it, in whatever case: other readers of JSON do not
// distinguish it.
func (s schema) field(t reflect.Type, name string) (reflect.Type, bool) {
	fields := s.fields(t)
	if at, has := fields[name]; has {
		return at, true
	}
	for known, at := range fields {
		if strings.EqualFold(known, name) {
			return at, true
		}
	}
	return nil, false
}

// target returns the type that pointers lead to.
func target(t reflect.Type) reflect.Type {
	for t != nil && t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return t
}

// opaque reports whether a type decodes itself.
func opaque(t reflect.Type) bool {
	return reflect.PointerTo(t).Implements(reflect.TypeFor[json.Unmarshaler]())
}

// nested returns what a path leads to, without a copy; nil if there is nothing.
func nested(object map[string]any, path ...string) any {
	var at any = object
	for _, step := range path {
		typed, _ := at.(map[string]any)
		at = typed[step]
	}
	return at
}

// sizeOf returns the bytes of the annotations of an object.
func sizeOf(object map[string]any) int {
	annotations, _ := nested(object, inMetadata, inAnnotations).(map[string]any)
	size := 0
	for key, value := range annotations {
		text, _ := value.(string)
		size += len(key) + len(text)
	}
	return size
}
