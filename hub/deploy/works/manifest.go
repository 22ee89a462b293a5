package works

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/spokelet/spokelet/internal/names"
)

// Identity identifies the object of a manifest. The API version is not part of it: a new version does not make it
// another object.
type Identity struct {
	// Group and Kind are those of the object.
	Group, Kind string
	// Namespace is empty for a cluster-scoped object.
	Namespace, Name string
}

// IdentityOf returns the identity of an object.
func IdentityOf(object *unstructured.Unstructured) Identity {
	return Identity{object.GroupVersionKind().Group, object.GetKind(), object.GetNamespace(), object.GetName()}
}

// String returns kind, namespace and name.
func (id Identity) String() string {
	name := id.Name
	if id.Namespace != "" {
		name = id.Namespace + "/" + name
	}
	return id.Kind + " " + name
}

// Manifest is an encoded object for a ManifestWork.
type Manifest struct {
	Identity
	// Raw is the object as canonical JSON: the keys are sorted, without spaces.
	Raw []byte
	// Terms are the terms of a pre-delete hook; nil for every other object.
	Terms *Terms

	sum [sha256.Size]byte
	// order is the position of the object in the rendering.
	order int
}

// encode encodes an object.
func encode(object *unstructured.Unstructured, order int) (Manifest, error) {
	m := Manifest{Identity: IdentityOf(object), order: order}
	raw, err := json.Marshal(withoutNulls(object.Object))
	if err != nil {
		return m, fmt.Errorf("%s cannot be encoded: %w", m.Identity, err)
	}
	m.Raw, m.sum = raw, sha256.Sum256(raw)
	if isHook(m.Kind, object.GetAnnotations(), object.GetLabels()) {
		m.Terms = termsOf(object.GetAnnotations())
	}
	return m, nil
}

// withoutNulls drops the creation timestamp that Go types encode as null. The API server drops it from a ManifestWork,
// so that it would be a difference for ever.
func withoutNulls(object map[string]any) map[string]any {
	metadata, ok := object["metadata"].(map[string]any)
	if value, stated := metadata["creationTimestamp"]; !ok || !stated || value != nil {
		return object
	}
	object, metadata = maps.Clone(object), maps.Clone(metadata)
	delete(metadata, "creationTimestamp")
	object["metadata"] = metadata
	return object
}

// isHook reports whether an object is a pre-delete hook: a Job or Pod with the mark, in its present or its former
// spelling, as annotation or label.
func isHook(kind string, annotations, labels map[string]string) bool {
	if kind != "Job" && kind != "Pod" {
		return false
	}
	for _, mark := range []string{names.AnnotationPreDelete, names.LabelPreDeleteOld} {
		_, annotated := annotations[mark]
		_, labelled := labels[mark]
		if annotated || labelled {
			return true
		}
	}
	return false
}

// Terms are how long a pre-delete hook may take and what happens then, as its author states in annotations.
type Terms struct {
	// Deadline is the value of names.AnnotationHookDeadline; empty when it is not stated.
	Deadline string
	// After is the value of names.AnnotationHookAfterDeadline; empty when it is not stated.
	After string
}

func termsOf(annotations map[string]string) *Terms {
	return &Terms{
		Deadline: annotations[names.AnnotationHookDeadline], After: annotations[names.AnnotationHookAfterDeadline],
	}
}
