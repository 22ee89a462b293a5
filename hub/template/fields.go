package template

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/spokelet/spokelet/internal/message"
)

// wantedKind is the kind of value that a field takes, as far as rendering distinguishes it.
type wantedKind uint8

const (
	// wantsAnything is a string, or unknown.
	wantsAnything wantedKind = iota
	wantsInteger
	wantsNumber
	wantsBoolean
	// wantsIntegerOrText is a port or its name, a number or a percentage. Kubernetes takes no text of digits there.
	wantsIntegerOrText
)

// wanted holds what a field takes.
type wanted struct {
	kind wantedKind
	// bits is the size of an integer.
	bits int
}

// statedTypes are the types that a template may state: those of numbers and booleans in the schema of a definition.
const statedTypes = "integer, number or boolean"

// statedType returns the type that a template states in {{NAME|type}}.
func statedType(name string) wanted {
	switch name {
	case "integer":
		return wanted{wantsInteger, 64}
	case "number":
		return wanted{kind: wantsNumber}
	case "boolean":
		return wanted{kind: wantsBoolean}
	}
	return wanted{}
}

// typeOfKind returns the Go type of a kind of Kubernetes; nil for every other kind.
func typeOfKind(apiVersion, kind string) reflect.Type {
	version, err := schema.ParseGroupVersion(apiVersion)
	if err != nil {
		return nil
	}
	object, err := scheme.Scheme.New(version.WithKind(kind))
	if err != nil {
		return nil
	}
	return reflect.TypeOf(object)
}

// fieldType returns the type of a field of an object, or of the values of a map; nil when it is unknown.
func fieldType(object reflect.Type, key string) reflect.Type {
	object = plainType(object)
	if object == nil {
		return nil
	}
	if object.Kind() == reflect.Map {
		return object.Elem()
	}
	if object.Kind() != reflect.Struct {
		return nil
	}
	for field := range object.Fields() {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		switch {
		case name == key:
			return field.Type
		case name == "" && field.Anonymous:
			if found := fieldType(field.Type, key); found != nil {
				return found
			}
		}
	}
	return nil
}

// itemType returns the type of the items of a list; nil when it is unknown.
func itemType(list reflect.Type) reflect.Type {
	if list = plainType(list); list != nil && list.Kind() == reflect.Slice {
		return list.Elem()
	}
	return nil
}

// plainType returns the type behind pointers; nil for a type that is encoded in its own way.
func plainType(t reflect.Type) reflect.Type {
	for t != nil && t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t == nil || reflect.PointerTo(t).Implements(reflect.TypeFor[json.Unmarshaler]()) {
		return nil
	}
	return t
}

// wantedBy returns what a field of a type takes.
func wantedBy(t reflect.Type) wanted {
	for t != nil && t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t == reflect.TypeFor[intstr.IntOrString]() {
		return wanted{wantsIntegerOrText, 32}
	}
	if t = plainType(t); t == nil {
		return wanted{}
	}
	switch t.Kind() {
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return wanted{wantsInteger, t.Bits()}
	case reflect.Float32, reflect.Float64:
		return wanted{kind: wantsNumber}
	case reflect.Bool:
		return wanted{kind: wantsBoolean}
	default:
		return wanted{}
	}
}

// convert returns a text as the value that a field takes, or what the text is not.
func (w wanted) convert(value string) (any, string) {
	switch w.kind {
	case wantsInteger:
		number, err := strconv.ParseInt(value, 10, w.bits)
		switch {
		case errors.Is(err, strconv.ErrRange):
			return value, fmt.Sprintf("is no whole number of %d bits", w.bits)
		case err != nil:
			return value, "is no whole number"
		}
		return number, ""
	case wantsNumber:
		return number(value)
	case wantsBoolean:
		switch value {
		case "true":
			return true, ""
		case "false":
			return false, ""
		}
		return value, "is neither true nor false"
	case wantsIntegerOrText:
		if number, err := strconv.ParseInt(value, 10, w.bits); err == nil {
			return number, ""
		}
		return value, ""
	default:
		return value, ""
	}
}

// number returns a text as a number of JSON, which knows no NaN and no infinity.
func number(value string) (any, string) {
	if whole, err := strconv.ParseInt(value, 10, 64); err == nil {
		return whole, ""
	}
	var fraction *float64
	if err := json.Unmarshal([]byte(value), &fraction); err != nil || fraction == nil {
		return value, "is no number"
	}
	return *fraction, ""
}

// shortened quotes a value, of which it drops what no message needs.
func shortened(value string) string {
	const enough = 64
	return strconv.Quote(message.Cut(value, enough))
}
