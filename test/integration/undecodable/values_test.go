package undecodable_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/yaml"

	"github.com/spokelet/spokelet/test/suite"
)

// value is a value that a field may get, at a path such as spec.taints[0].timeAdded.
type value struct {
	path []string
	is   any
}

func (v value) String() string {
	return fmt.Sprintf("%s = %v", strings.ReplaceAll(strings.Join(v.path, "."), ".#", "#"), v.is)
}

// beyond and before are times of the years 10000 and -1 in UTC, as Go encodes them.
const (
	beyond = "9999-12-31T23:59:59-23:59"
	before = "0000-01-01T00:00:00+23:59"
)

// strange returns the values that Go refuses for a type, or that it encodes so that nobody decodes them, and which a schema may take; nil for a type with parts. must
// reports whether the object that they are put into must have such a field.
func strange(of reflect.Type) (values []any, must bool) {
	times := []any{
		"2026-01-02t03:04:05z", "2026-01-02T03:04:05Ztomorrow", "2026-01-02T03:04:05+99:99", "2026-01-02T03:04:05",
		"2026-02-30T03:04:05Z", "2026-01-02T23:59:60Z", beyond, before,
	}
	switch of {
	case reflect.TypeFor[metav1.Time](), reflect.TypeFor[metav1.MicroTime]():
		return times, true
	case reflect.TypeFor[metav1.Duration]():
		return []any{"abc", "5", "", "99999999999h", "1h99999999999999m", "1d"}, true
	case reflect.TypeFor[resource.Quantity]():
		return []any{"1e1.5", "1e99999999999999999999", "1e-99999999999999999999", "1Zi", "e", float64(1.5)}, true
	case reflect.TypeFor[intstr.IntOrString]():
		return []any{int64(99999999999), int64(-99999999999), float64(1.5)}, true
	case reflect.TypeFor[[]byte]():
		return []any{"%%%", "YQ=", int64(7)}, false
	case reflect.TypeFor[runtime.RawExtension]():
		return []any{}, false
	}
	switch of.Kind() {
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32:
		return []any{int64(99999999999), int64(-99999999999), int64(2147483648), int64(-2147483649), float64(1.5), "1"}, true
	case reflect.Int64, reflect.Uint64:
		return []any{float64(1e20), float64(-1e20), float64(9.3e18), float64(1.5), "1"}, true
	case reflect.Bool:
		return []any{"yes", int64(1)}, false
	case reflect.String:
		return []any{int64(1), true}, false
	default: // all others have parts
		return nil, false
	}
}

// valuesOf returns all strange values for the fields of a Go type that an object has.
func valuesOf(t *testing.T, of reflect.Type, in any, path []string) []value {
	t.Helper()
	for of.Kind() == reflect.Pointer {
		of = of.Elem()
	}
	below := func(name string) []string { return append(append([]string{}, path...), name) }
	all, must := strange(of)
	if in == nil {
		require.False(t, must, "testdata/objects.yaml has no %s", strings.Join(path, "."))
	}
	if all != nil {
		var values []value
		for _, one := range all {
			values = append(values, value{path, one})
		}
		if in == nil {
			return nil
		}
		return values
	}
	var values []value
	switch of.Kind() {
	case reflect.Struct:
		fields, _ := in.(map[string]any)
		for i := range of.NumField() {
			field := of.Field(i)
			name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
			switch {
			case field.Type == reflect.TypeFor[metav1.TypeMeta](), field.Type == reflect.TypeFor[metav1.ObjectMeta](), name == "-":
			case name == "":
				values = append(values, valuesOf(t, field.Type, in, path)...)
			default:
				values = append(values, valuesOf(t, field.Type, fields[name], below(name))...)
			}
		}
	case reflect.Slice:
		var first any
		if items, ok := in.([]any); ok && len(items) > 0 {
			first = items[0]
		}
		values = valuesOf(t, of.Elem(), first, below("#0"))
	case reflect.Map:
		fields, _ := in.(map[string]any)
		for name, one := range fields {
			values = append(values, valuesOf(t, of.Elem(), one, below(name))...)
		}
	default:
	}
	return values
}

// put sets a value in an object.
func (v value) put(object any) {
	for i, name := range v.path {
		last := i == len(v.path)-1
		if index, isIndex := strings.CutPrefix(name, "#"); isIndex {
			items, _ := object.([]any) // the object has the path
			at, _ := strconv.Atoi(index)
			if last {
				items[at] = v.is
			}
			object = items[at]
			continue
		}
		fields, _ := object.(map[string]any)
		if last {
			fields[name] = v.is
		}
		object = fields[name]
	}
}

// bases returns the objects that values are put into.
func bases(t *testing.T) []*unstructured.Unstructured {
	t.Helper()
	var all []*unstructured.Unstructured
	for _, document := range bytes.Split(objects, []byte("\n---\n")) {
		raw, err := yaml.YAMLToJSON(document)
		require.NoError(t, err)
		u := &unstructured.Unstructured{}
		require.NoError(t, u.UnmarshalJSON(raw))
		all = append(all, u)
	}
	return all
}

// typeOf returns the Go type of an object.
func typeOf(t *testing.T, u *unstructured.Unstructured) reflect.Type {
	t.Helper()
	typed, err := suite.Scheme().New(u.GroupVersionKind())
	require.NoError(t, err)
	return reflect.TypeOf(typed)
}

// undecodable returns why Go cannot decode an object; nil when it can.
func undecodable(t *testing.T, u *unstructured.Unstructured) error {
	t.Helper()
	raw, err := u.MarshalJSON()
	require.NoError(t, err)
	decoded := reflect.New(typeOf(t, u).Elem()).Interface()
	if err := json.Unmarshal(raw, decoded); err != nil {
		return err
	}
	again, err := json.Marshal(decoded)
	require.NoError(t, err)
	return json.Unmarshal(again, reflect.New(typeOf(t, u).Elem()).Interface())
}
