package work

import (
	"encoding/json"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/spokelet/spokelet/internal/names"
)

// outsideContent tells whether a top-level field is not content: who the object is, and what others say about it.
func outsideContent(key string) bool {
	return key == "apiVersion" || key == "kind" || key == "metadata" || key == "status"
}

// contentOf returns the content of an object: all of it but who it is, its metadata and its status. The values are
// shared with the object.
func contentOf(object *unstructured.Unstructured) map[string]any {
	content := make(map[string]any, len(object.Object))
	for key, value := range object.Object {
		if !outsideContent(key) {
			content[key] = value
		}
	}
	return content
}

// sameContent tells whether two contents are equal; empty and absent are the same.
func sameContent(a, b map[string]any) bool { return equality.Semantic.DeepEqual(a, b) }

// contains tells whether live says everything that wanted says; what only live says is not looked at. Lists must have
// the same length, their elements are compared in order.
func contains(live, wanted any) bool {
	switch wanted := wanted.(type) {
	case nil:
		return true
	case map[string]any:
		have, ok := live.(map[string]any)
		if !ok {
			return live == nil && len(wanted) == 0
		}
		for key, value := range wanted {
			if !contains(have[key], value) {
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
			if !contains(have[i], wanted[i]) {
				return false
			}
		}
		return true
	default:
		return equality.Semantic.DeepEqual(live, wanted)
	}
}

// foreignContent tells whether, by the managed fields, anybody but this agent set any content of the object. When in
// doubt it says so.
func foreignContent(object metav1.Object) bool {
	for _, entry := range object.GetManagedFields() {
		if entry.Subresource == "status" || entry.FieldsV1 == nil {
			continue
		}
		if entry.Manager == names.FieldManagerWork && entry.Operation == metav1.ManagedFieldsOperationUpdate {
			continue
		}
		fields := map[string]json.RawMessage{}
		if err := json.Unmarshal(entry.FieldsV1.Raw, &fields); err != nil {
			return true
		}
		for field := range fields {
			if name, ok := strings.CutPrefix(field, "f:"); ok && !outsideContent(name) {
				return true
			}
		}
	}
	return len(object.GetManagedFields()) == 0
}

// contentDigest digests what of a live object would be missed if it changed. Under ServerSideApply that is what was
// applied; a look that found no more than a new status leaves what was known.
func (t *task) contentDigest(live *unstructured.Unstructured) digest {
	switch {
	case t.configuration != nil:
		return t.configuration.digest(live)
	case t.option.strategy.Type == workv1.UpdateStrategyTypeServerSideApply:
		return t.prior.content
	}
	return digestOf(contentOf(live))
}
