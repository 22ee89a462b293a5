package manifest

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/spokelet/spokelet/internal/reconcile"
)

// Manifest is one entry of spec.workload.manifests, decoded and mapped, without its bytes.
type Manifest struct {
	// Ordinal is the index in the spec.
	Ordinal int
	// GVK, Namespace and Name are those of the manifest.
	GVK             schema.GroupVersionKind
	Namespace, Name string
	// Resource is where the API server serves the object; its Resource is empty while that is unknown.
	Resource schema.GroupVersionResource
	// Namespaced reports whether objects of the kind live in a namespace.
	Namespaced bool
	// Err is why the manifest cannot be applied at all; nil when it can.
	Err error
	// Options are those of a mapped manifest.
	Options Options
	// Desired digests all that decides the desired state of the object.
	Desired Digest
	// Reads digests the feedback rules and condition rules; it is zero when there are none.
	Reads Digest
}

// Mapped reports whether it is known where the API server serves the kind of the manifest.
func (m *Manifest) Mapped() bool { return m.Resource.Resource != "" }

// Located reports whether it is known which object the manifest means.
func (m *Manifest) Located() bool { return m.Mapped() && (m.Namespace != "" || !m.Namespaced) }

// Decoded reports whether the manifest has a kind and a name.
func (m *Manifest) Decoded() bool { return m.GVK.Kind != "" && m.Name != "" }

// Retriable reports whether the error of the manifest may go away without a change of the spec.
func (m *Manifest) Retriable() bool { return m.Decoded() && !m.Mapped() }

// Unserved reports whether the API server does not serve the kind of the manifest.
func (m *Manifest) Unserved() bool {
	var missing unservedError
	return errors.As(m.Err, &missing)
}

// ID identifies the object of a located manifest.
func (m *Manifest) ID() ID {
	return ID{Group: m.Resource.Group, Resource: m.Resource.Resource, Namespace: m.Namespace, Name: m.Name}
}

// Entry is the object in the list of applied resources.
func (m *Manifest) Entry(uid string) workv1.AppliedManifestResourceMeta {
	return workv1.AppliedManifestResourceMeta{
		ResourceIdentifier: workv1.ResourceIdentifier(m.ID()),
		Version:            m.Resource.Version,
		UID:                uid,
	}
}

// Meta is the manifest in the status of the work.
func (m *Manifest) Meta() workv1.ManifestResourceMeta {
	ordinal := reconcile.Int32(m.Ordinal)
	if !m.Decoded() {
		return workv1.ManifestResourceMeta{Ordinal: ordinal}
	}
	return workv1.ManifestResourceMeta{
		Ordinal: ordinal,
		Group:   m.GVK.Group, Version: m.GVK.Version, Kind: m.GVK.Kind,
		Resource: m.Resource.Resource, Namespace: m.Namespace, Name: m.Name,
	}
}

// CouldBe reports whether the manifest may mean a tracked object, as far as it could be read: a part that is unknown
// matches everything. So an entry that an unreadable manifest may mean is kept.
func (m *Manifest) CouldBe(entry workv1.AppliedManifestResourceMeta) bool {
	switch {
	case m.Located():
		return m.ID() == IDOf(entry)
	case m.Mapped():
		return m.Resource.GroupResource() == ResourceOf(entry).GroupResource() && m.Name == entry.Name
	case m.GVK.Version != "" && m.GVK.Group != entry.Group && !m.resembles(entry.Resource):
		return false
	case m.Name != "" && m.Name != entry.Name:
		return false
	}
	return m.Namespace == "" || entry.Namespace == "" || m.Namespace == entry.Namespace
}

// resembles reports whether a resource may be that of the kind: a typing error in apiVersion makes another group of it.
// A resource is the plural of its kind, whose end differs.
func (m *Manifest) resembles(resource string) bool {
	return strings.HasPrefix(resource, strings.TrimSuffix(strings.ToLower(m.GVK.Kind), "y"))
}

// Parse reads kind, namespace and name. A manifest that cannot be read has an error and as much of them as it has.
func Parse(ordinal int, raw []byte) Manifest {
	m := Manifest{Ordinal: ordinal}
	object, err := decode(raw)
	if object == nil {
		m.Err = fmt.Errorf("the manifest cannot be decoded: %w", err)
		return m
	}
	m.GVK = object.GroupVersionKind()
	m.Namespace, m.Name = object.GetNamespace(), object.GetName()
	switch {
	case err != nil:
		m.Err = fmt.Errorf("the manifest cannot be decoded: %w", err)
		m.GVK.Kind = ""
	case m.GVK.Kind == "" || m.GVK.Version == "":
		m.GVK.Kind = ""
		m.Err = fmt.Errorf("the manifest cannot be decoded: %w", errNoKind)
	case m.Name == "" && object.GetGenerateName() != "":
		m.Err = errors.New("the manifest has metadata.generateName, which is not supported: set metadata.name")
	case m.Name == "":
		m.Err = errors.New("the manifest has no metadata.name")
	}
	return m
}

// checkSegment returns an error if a name cannot be part of an address of the API: an API server has no such object,
// and no client asks for one, so it could never be removed.
func checkSegment(field, name string) error {
	if wrong := content.IsPathSegmentName(name); len(wrong) > 0 {
		return fmt.Errorf("the manifest cannot be applied: %s %s", field, strings.Join(wrong, ", "))
	}
	return nil
}

// HasAddress reports whether a client can ask for an object. No API server has one for which that is false.
func HasAddress(id ID) bool {
	return checkSegment("", id.Name) == nil && checkSegment("", id.Namespace) == nil
}

// errNoKind means that a manifest is JSON but no Kubernetes object. The error of the decoder quotes the whole manifest,
// which may be a Secret.
var errNoKind = errors.New("it needs apiVersion and kind")

// decode decodes a manifest. When it is JSON but no Kubernetes object, the error comes with the content.
func decode(raw []byte) (*unstructured.Unstructured, error) {
	object := &unstructured.Unstructured{}
	err := object.UnmarshalJSON(raw)
	if err == nil {
		return object, nil
	}
	content := map[string]any{}
	if json.Unmarshal(raw, &content) != nil || content == nil {
		return nil, err
	}
	return &unstructured.Unstructured{Object: content}, errNoKind
}

// Object decodes the bytes of the manifest as the object to send, without the fields that only the API server sets.
func (m *Manifest) Object(raw []byte) (*unstructured.Unstructured, error) {
	object, err := decode(raw)
	if err != nil {
		return nil, fmt.Errorf("the manifest cannot be decoded: %w", err)
	}
	unstructured.RemoveNestedField(object.Object, "metadata", "uid")
	unstructured.RemoveNestedField(object.Object, "metadata", "managedFields")
	unstructured.RemoveNestedField(object.Object, "metadata", "creationTimestamp")
	if !m.Namespaced {
		unstructured.RemoveNestedField(object.Object, "metadata", "namespace")
	}
	return object, nil
}

// Usable divides the condition rules of a kind into those that can be evaluated and the reasons why the others cannot.
type Usable func(gvk schema.GroupVersionKind, rules []workv1.ConditionRule) ([]workv1.ConditionRule, []string)

// Resolve maps the manifest and adds the options of the rest of the spec.
func (m *Manifest) Resolve(mapper meta.RESTMapper, spec *workv1.ManifestWorkSpec, usable Usable) {
	mapping, err := mapper.RESTMapping(m.GVK.GroupKind(), m.GVK.Version)
	switch {
	case meta.IsNoMatchError(err):
		m.Err = unservedError{kind: m.GVK.Kind}
		return
	case err != nil:
		m.Err = fmt.Errorf("looking up where the API server serves the kind %s: %w", m.GVK, err)
		return
	}
	m.Err = nil
	m.Resource = mapping.Resource
	m.Namespaced = mapping.Scope.Name() == meta.RESTScopeNameNamespace
	if !m.Namespaced {
		m.Namespace = ""
	}
	raw := spec.Workload.Manifests[m.Ordinal].Raw
	named := errors.Join(checkSegment("metadata.name", m.Name), checkSegment("metadata.namespace", m.Namespace))
	switch {
	case !m.Located():
		m.Err = fmt.Errorf("the manifest has no metadata.namespace, but %s live in a namespace", m.Resource.Resource)
	case named != nil:
		m.Err = named
	case m.GVK.Group == "" && m.GVK.Kind == "Secret":
		m.Err = checkSecret(raw)
	}
	m.Options = optionsFor(spec.ManifestConfigs, m.ID())
	m.Options.Owned = Owned(spec.DeleteOption, m.ID())
	m.Desired = desiredDigest(m, raw)
	m.Options.Rules, m.Options.RefusedRules = usable(m.GVK, m.Options.Rules)
	if len(m.Options.Feedback) > 0 || len(m.Options.Rules) > 0 {
		m.Reads = DigestOf([]any{m.Options.Feedback, m.Options.Rules})
	}
}

// Unserve returns the manifest after the API server turned out not to serve its kind any more. It waits for the
// definition of the kind from now on.
func (m *Manifest) Unserve() Manifest {
	unserved := *m
	unserved.Resource, unserved.Err = schema.GroupVersionResource{}, unservedError{kind: m.GVK.Kind}
	return unserved
}

// unservedError means that the API server does not serve the kind.
type unservedError struct{ kind string }

// Error is the text that OCM wants in the status.
func (e unservedError) Error() string {
	return fmt.Sprintf("the server doesn't have a resource type %q", e.kind)
}

// RefuseDuplicates refuses each manifest that means the same object as one before it: the two would undo each other's
// writes for ever. The versions of a kind are the same objects.
func RefuseDuplicates(manifests []Manifest) {
	first := map[ID]int{}
	for i := range manifests {
		m := &manifests[i]
		if duplicate := (duplicateError{}); errors.As(m.Err, &duplicate) {
			m.Err = nil
		}
		if !m.Mapped() || m.Err != nil {
			continue
		}
		if at, twice := first[m.ID()]; twice {
			m.Err = duplicateError{first: at, gvk: m.GVK, other: manifests[at].GVK, id: m.ID()}
			continue
		}
		first[m.ID()] = i
	}
}

// duplicateError means that an earlier manifest means the same object.
type duplicateError struct {
	first      int
	gvk, other schema.GroupVersionKind
	id         ID
}

// Error begins with the text of docs/reference/work.md, "Admission of works".
func (e duplicateError) Error() string {
	return fmt.Sprintf("duplicate manifest for resource %s/%s with resource type %s.%s: "+
		"the manifest with the ordinal %d means the same object, as %s; remove one of them",
		e.id.Namespace, e.id.Name, e.gvk.GroupVersion(), e.gvk.Kind, e.first, e.other.GroupVersion())
}

// Presence holds what is known of the existence of an object.
type Presence int

const (
	// Unknown means that the object could not be read.
	Unknown Presence = iota
	// Absent means that the object does not exist.
	Absent
	// Present means that the object exists.
	Present
)
