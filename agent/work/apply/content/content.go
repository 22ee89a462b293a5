package content

import (
	"encoding/json"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/spokelet/spokelet/internal/expressions"
	"github.com/spokelet/spokelet/internal/names"
)

// ScaleSubresource is where a HorizontalPodAutoscaler or kubectl scale sets the number of replicas.
const ScaleSubresource = "scale"

// Outside reports whether a top-level field is not content: it identifies the object, or is its metadata or status.
func Outside(key string) bool {
	return key == "apiVersion" || key == "kind" || key == "metadata" || key == "status"
}

// Of returns the content of an object: all fields but its identity, metadata and status. The values are shared with the
// object.
func Of(object *unstructured.Unstructured) map[string]any {
	content := make(map[string]any, len(object.Object))
	for key, value := range object.Object {
		if !Outside(key) {
			content[key] = value
		}
	}
	return content
}

// Same reports whether two contents are equal; empty and absent are the same.
func Same(a, b map[string]any) bool { return equality.Semantic.DeepEqual(a, b) }

// Contains reports whether live has every value of wanted; other values of live do not matter. Lists must have the same
// length, and their elements are compared in order.
func Contains(live, wanted any) bool { return covers(live, wanted, equality.Semantic.DeepEqual) }

// Resembles is Contains for an object that nobody else has written: a quantity may have another notation, because the
// API server changes it.
func Resembles(live, wanted any) bool { return covers(live, wanted, sameQuantity) }

// sameQuantity reports whether two scalars are equal or mean the same quantity, as 1000m and 1 do.
func sameQuantity(a, b any) bool {
	if equality.Semantic.DeepEqual(a, b) {
		return true
	}
	one, first := quantityOf(a)
	two, second := quantityOf(b)
	return first && second && one.Cmp(two) == 0
}

// quantityOf reads a scalar as a quantity.
func quantityOf(value any) (resource.Quantity, bool) {
	text, _ := value.(string)
	if number, isNumber := value.(int64); isNumber {
		text = strconv.FormatInt(number, 10)
	}
	quantity, err := expressions.ParseQuantity(text)
	return quantity, err == nil
}

// covers reports whether live has every value of wanted, with scalars compared by same.
func covers(live, wanted any, same func(a, b any) bool) bool {
	switch wanted := wanted.(type) {
	case nil:
		return true
	case map[string]any:
		have, ok := live.(map[string]any)
		if !ok {
			return live == nil && len(wanted) == 0
		}
		for key, value := range wanted {
			if !covers(have[key], value, same) {
				return false
			}
		}
		return true
	case []any:
		have, ok := live.([]any)
		if !ok {
			return live == nil && len(wanted) == 0
		}
		if len(have) != len(wanted) {
			return false
		}
		for i := range wanted {
			if !covers(have[i], wanted[i], same) {
				return false
			}
		}
		return true
	default:
		return same(live, wanted)
	}
}

// Foreign reports whether, by the managed fields, anybody but this agent set any content of the object, except by
// scaling it. It reports true when in doubt.
func Foreign(object metav1.Object) bool {
	for _, entry := range object.GetManagedFields() {
		if entry.Subresource == "status" || entry.Subresource == ScaleSubresource || entry.FieldsV1 == nil {
			continue
		}
		if entry.Manager == names.FieldManagerWork && entry.Operation == metav1.ManagedFieldsOperationUpdate {
			continue
		}
		fields := map[string]json.RawMessage{}
		if err := json.Unmarshal(entry.FieldsV1.GetRawBytes(), &fields); err != nil {
			return true
		}
		for field := range fields {
			if name, ok := strings.CutPrefix(field, "f:"); ok && !Outside(name) {
				return true
			}
		}
	}
	return len(object.GetManagedFields()) == 0
}

// Empty reports whether a JSON value is null or has no element.
func Empty(value any) bool {
	switch value := value.(type) {
	case nil:
		return true
	case map[string]any:
		return len(value) == 0
	case []any:
		return len(value) == 0
	case string:
		return value == ""
	}
	return false
}

// SameValue reports whether two scalars are equal.
func SameValue(a, b any) bool { return equality.Semantic.DeepEqual(a, b) }
