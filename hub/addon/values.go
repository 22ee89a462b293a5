package addon

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"

	jsonk8s "sigs.k8s.io/json"

	"github.com/spokelet/spokelet/internal/names"
)

// Values are what templates and charts are rendered with.
type Values map[string]any

// ValuesFunc returns values for the add-on on one cluster. It must be a pure function of the request.
type ValuesFunc func(ctx context.Context, request Request) (Values, error)

// MergeValues returns the values of all arguments. Of two values with one name, the later counts, but maps are merged.
// The arguments stay as they are: the result shares no map and no list with them.
func MergeValues(values ...Values) Values {
	merged := map[string]any{}
	for _, from := range values {
		merge(merged, from)
	}
	return merged
}

func merge(to, from map[string]any) {
	for name, value := range from {
		below, isMap := asMap(value)
		there, also := asMap(to[name])
		if isMap && also {
			merge(there, below) // It is a copy: only copies are put into a result.
			continue
		}
		to[name] = copyOf(value)
	}
}

// asMap returns a value as a map; false when it is none.
func asMap(value any) (map[string]any, bool) {
	switch typed := value.(type) {
	case map[string]any:
		return typed, true
	case Values:
		return typed, true
	}
	return nil, false
}

// copyOf returns a copy of maps and lists; values of other types are not changed by anybody.
func copyOf(value any) any {
	if from, isMap := asMap(value); isMap {
		if from == nil {
			return map[string]any(nil)
		}
		to := make(map[string]any, len(from))
		for name, item := range from {
			to[name] = copyOf(item)
		}
		return to
	}
	list, isList := value.([]any)
	if !isList || list == nil {
		return value
	}
	to := make([]any, len(list))
	for i, item := range list {
		to[i] = copyOf(item)
	}
	return to
}

// GetValuesFromAddonAnnotation is a ValuesFunc: it returns the values in annotation
// addon.open-cluster-management.io/values of the ManagedClusterAddOn, a JSON object. Whole numbers are int64. The error
// is an InvalidError.
func GetValuesFromAddonAnnotation(_ context.Context, request Request) (Values, error) {
	text := request.AddOn.Annotations[names.AnnotationValues]
	if text == "" {
		return nil, nil
	}
	values := map[string]any{}
	if err := jsonk8s.UnmarshalCaseSensitivePreserveInts([]byte(text), &values); err != nil {
		return nil, &InvalidError{Message: fmt.Sprintf("annotation %s of ManagedClusterAddOn %s/%s is no JSON object: %v",
			names.AnnotationValues, request.AddOn.Namespace, request.AddOn.Name, err)}
	}
	return values, nil
}

// JSONStructToValues returns a struct as values by its JSON encoding, as charts read them.
func JSONStructToValues(object any) (Values, error) {
	raw, err := json.Marshal(object)
	if err != nil {
		return nil, fmt.Errorf("encoding %T as values: %w", object, err)
	}
	values := map[string]any{}
	if err := jsonk8s.UnmarshalCaseSensitivePreserveInts(raw, &values); err != nil {
		return nil, fmt.Errorf("reading the encoding of %T as values: %w", object, err)
	}
	return values, nil
}

// StructToValues returns a struct, or what a pointer to one points to, as values by the names of its exported fields,
// as Go templates read them. Structs in it become values, too, also in lists and maps. One without exported fields,
// like a time, and anything else stays as it is. Values of any other type are no values.
func StructToValues(object any) Values {
	values, _ := fieldsOf(reflect.ValueOf(object)).(map[string]any)
	if values == nil {
		return Values{}
	}
	return values
}

func fieldsOf(value reflect.Value) any {
	if !value.IsValid() {
		return nil
	}
	inner := value
	for inner.Kind() == reflect.Pointer && !inner.IsNil() {
		inner = inner.Elem()
	}
	switch {
	case inner.Kind() == reflect.Struct:
		if fields := exported(inner); len(fields) > 0 {
			return fields
		}
	case inner.Kind() == reflect.Slice && hasStructs(inner.Type()):
		items := make([]any, inner.Len())
		for i := range items {
			items[i] = fieldsOf(inner.Index(i))
		}
		return items
	case inner.Kind() == reflect.Map && inner.Type().Key().Kind() == reflect.String && hasStructs(inner.Type()):
		items := make(map[string]any, inner.Len())
		for entries := inner.MapRange(); entries.Next(); {
			items[entries.Key().String()] = fieldsOf(entries.Value())
		}
		return items
	}
	return value.Interface()
}

// exported returns the exported fields of a struct.
func exported(value reflect.Value) map[string]any {
	fields := map[string]any{}
	for i := range value.NumField() {
		if field := value.Type().Field(i); field.IsExported() {
			fields[field.Name] = fieldsOf(value.Field(i))
		}
	}
	return fields
}

// hasStructs reports whether the elements of a list or of a map are structs, pointers to some, or lists of some.
func hasStructs(collection reflect.Type) bool {
	element := collection.Elem()
	for element.Kind() == reflect.Pointer || element.Kind() == reflect.Slice {
		element = element.Elem()
	}
	return element.Kind() == reflect.Struct
}
