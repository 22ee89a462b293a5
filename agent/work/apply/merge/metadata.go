package merge

import (
	"maps"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/spokelet/spokelet/agent/work/inventory"
)

// withLabels merges labels or annotations: those in want are added or replaced, a key that ends in dashes removes the
// key without them, and all others stay.
func withLabels(have, want map[string]string) map[string]string {
	merged := maps.Clone(have)
	if merged == nil {
		merged = map[string]string{}
	}
	for key, value := range want {
		if bare := strings.TrimRight(key, "-"); bare != key {
			delete(merged, bare)
			continue
		}
		merged[key] = value
	}
	return merged
}

// Metadata merges the metadata of the desired object into next, a copy of the live one, and reports whether that
// changed anything. Name, namespace and finalizers stay those of the live object.
func Metadata(next, desired *unstructured.Unstructured, owner metav1.OwnerReference, owned bool) bool {
	changed := false
	if labels := withLabels(next.GetLabels(), desired.GetLabels()); !maps.Equal(labels, next.GetLabels()) {
		next.SetLabels(labels)
		changed = true
	}
	annotations := withLabels(next.GetAnnotations(), desired.GetAnnotations())
	if !maps.Equal(annotations, next.GetAnnotations()) {
		next.SetAnnotations(annotations)
		changed = true
	}
	refs := inventory.WithOwner(next.GetOwnerReferences(), owner, owned)
	if !equality.Semantic.DeepEqual(refs, next.GetOwnerReferences()) {
		next.SetOwnerReferences(refs)
		changed = true
	}
	return changed
}

// ForCreate returns the object to create: without keys that end in dashes, without a resourceVersion, and with no other
// owner than the work.
func ForCreate(desired *unstructured.Unstructured, owner metav1.OwnerReference, owned bool) *unstructured.Unstructured {
	object := desired.DeepCopy()
	unstructured.RemoveNestedField(object.Object, "metadata", "resourceVersion")
	object.SetLabels(withoutMarks(object.GetLabels()))
	object.SetAnnotations(withoutMarks(object.GetAnnotations()))
	object.SetOwnerReferences(inventory.WithOwner(nil, owner, owned))
	return object
}

// withoutMarks drops the keys that end in a dash, which remove a label.
func withoutMarks(labels map[string]string) map[string]string {
	kept := maps.Clone(labels)
	maps.DeleteFunc(kept, func(key, _ string) bool { return strings.HasSuffix(key, "-") })
	return kept
}
