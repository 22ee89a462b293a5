package deploy

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/spokelet/spokelet/hub/addon"
	"github.com/spokelet/spokelet/hub/deploy/health"
	"github.com/spokelet/spokelet/internal/names"
)

// identity identifies the object of a manifest. The API version is not part of it: a new version does not make it
// another object.
type identity struct {
	group, kind, namespace, name string
}

// String returns kind, namespace and name.
func (id identity) String() string {
	name := id.name
	if id.namespace != "" {
		name = id.namespace + "/" + name
	}
	return id.kind + " " + name
}

// manifest is an encoded object for a ManifestWork.
type manifest struct {
	identity
	raw []byte
	// order is the position of the object in the rendering.
	order int
}

// encode encodes the objects of a rendering. The error is an addon.InvalidError that lists all objects that cannot be
// deployed.
func encode(objects []*unstructured.Unstructured) ([]manifest, error) {
	all := make([]manifest, 0, len(objects))
	var problems []string
	for i, object := range objects {
		id := identity{
			object.GroupVersionKind().Group, object.GetKind(), object.GetNamespace(), object.GetName(),
		}
		raw, err := json.Marshal(withoutNulls(object.Object))
		switch {
		case err != nil:
			problems = append(problems, fmt.Sprintf("%s cannot be encoded: %v", id, err))
		case isHook(object):
			problems = append(problems, fmt.Sprintf("%s is a pre-delete hook (%s), and those are not supported yet: remove "+
				"it or the mark; nothing was deployed, so that it does not run now", id, names.AnnotationPreDelete))
		case len(raw) > maxWorkBytes:
			problems = append(problems, fmt.Sprintf("%s has %d bytes, and a ManifestWork takes no more than %d: make it "+
				"smaller or split it", id, len(raw), maxWorkBytes))
		}
		all = append(all, manifest{identity: id, raw: raw, order: i})
	}
	if len(problems) > 0 {
		return nil, &addon.InvalidError{Message: strings.Join(problems, "; ")}
	}
	return all, nil
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

// isHook reports whether an object is a pre-delete hook.
func isHook(object *unstructured.Unstructured) bool {
	if kind := object.GetKind(); kind != "Job" && kind != "Pod" {
		return false
	}
	_, annotated := object.GetAnnotations()[names.AnnotationPreDelete]
	_, labelled := object.GetLabels()[names.AnnotationPreDelete]
	return annotated || labelled
}

// stored is a manifest of an existing ManifestWork, as far as it is needed.
type stored struct {
	identity
	// replicas is spec.replicas; -1 when it is not set.
	replicas int64
}

// readManifest reads the identity of a manifest in a ManifestWork.
func readManifest(m *workv1.Manifest) (stored, error) {
	raw := m.Raw
	if raw == nil && m.Object != nil {
		var err error
		if raw, err = json.Marshal(m.Object); err != nil {
			return stored{}, fmt.Errorf("encoding a manifest: %w", err)
		}
	}
	var object struct {
		APIVersion string `json:"apiVersion"`
		Kind       string `json:"kind"`
		Metadata   struct {
			Namespace string `json:"namespace"`
			Name      string `json:"name"`
		} `json:"metadata"`
		Spec json.RawMessage `json:"spec"`
	}
	if err := json.Unmarshal(raw, &object); err != nil {
		return stored{}, fmt.Errorf("decoding a manifest: %w", err)
	}
	version, err := schema.ParseGroupVersion(object.APIVersion)
	if err != nil || object.Kind == "" {
		return stored{}, errors.New("decoding a manifest: it has no apiVersion and kind")
	}
	s := stored{identity{version.Group, object.Kind, object.Metadata.Namespace, object.Metadata.Name}, -1}
	var spec struct {
		Replicas *int64 `json:"replicas"`
	}
	if json.Unmarshal(object.Spec, &spec) == nil && spec.Replicas != nil {
		s.replicas = *spec.Replicas
	}
	return s, nil
}

// healthObject returns the part of a manifest that the health of its object depends on.
func (s stored) healthObject() health.Object {
	return health.Object{
		Group: s.group, Kind: s.kind, Namespace: s.namespace, Name: s.name, Replicas: s.replicas,
	}
}
