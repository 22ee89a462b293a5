package webhook

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"

	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"

	"github.com/spokelet/spokelet/internal/addonapi"
)

const inRegistrations, inReferences = "registrations", "configReferences"

// mover says where the other version has a field of the status.
type mover struct {
	// object is the converted object, in the one before.
	object map[string]any
	in     any
	// registrations and references are the indexes in v1alpha1 of the lists of v1beta1.
	registrations, references []int
}

func newMover(object map[string]any, in any) *mover {
	m := &mover{object: object, in: in}
	if beta, is := in.(*addonv1beta1.ManagedClusterAddOn); is {
		m.registrations, m.references = addonapi.AlphaPositions(beta)
	}
	return m
}

// moved returns where the other version has a field.
func (m *mover) moved(path []any) []any {
	if len(path) < 2 || path[0] != inStatus {
		return path
	}
	path = slices.Clone(path)
	switch m.in.(type) {
	case *addonv1alpha1.ClusterManagementAddOn:
		rename(path, "defaultconfigReferences", "defaultConfigReferences")
	case *addonv1beta1.ClusterManagementAddOn:
		rename(path, "defaultConfigReferences", "defaultconfigReferences")
	case *addonv1alpha1.ManagedClusterAddOn:
		return m.intoRegistration(path)
	case *addonv1beta1.ManagedClusterAddOn:
		return m.outOfRegistration(path)
	}
	return path
}

// rename gives a part of the status the name of the other version.
func rename(path []any, from, to string) {
	if path[1] == from {
		path[1] = to
	}
}

// intoRegistration returns the place of a field in v1beta1, where the subject of a registration is a level deeper.
func (m *mover) intoRegistration(path []any) []any {
	if len(path) < 4 || path[1] != inRegistrations || path[3] != "subject" {
		return path
	}
	list, _ := nested(m.object, inStatus, inRegistrations).([]any)
	if i, ok := path[2].(int); ok && i < len(list) {
		registration, _ := list[i].(map[string]any)
		for _, kind := range []string{"kubeClient", "customSigner"} {
			if _, is := registration[kind]; is {
				return slices.Insert(path, 3, any(kind))
			}
		}
	}
	return path
}

// outOfRegistration returns the place of a field in v1alpha1, which may lack elements of the lists of v1beta1.
func (m *mover) outOfRegistration(path []any) []any {
	if len(path) < 3 {
		return path
	}
	i, _ := path[2].(int)
	switch {
	case path[1] == inReferences && i < len(m.references):
		path[2] = m.references[i]
	case path[1] == inRegistrations && i < len(m.registrations):
		path[2] = m.registrations[i]
		if len(path) > 4 && path[4] == "subject" && (path[3] == "kubeClient" || path[3] == "customSigner") {
			path = slices.Delete(path, 3, 4)
		}
	}
	return path
}

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
