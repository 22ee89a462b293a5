package work

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"hash"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/spokelet/spokelet/agent/work/feedback"
)

// digest is a SHA-256; the zero digest means none.
type digest [sha256.Size]byte

// wish is what is wanted of an object and what keeps that from being done. A record is of use only for the wish that it
// was made for, so a manifest that was frozen or denied is applied as soon as it is neither.
type wish struct {
	// content digests the manifest and how it is to be applied; zero means that nothing was wished.
	content digest
	// frozen and denied say that the object was only looked at, because the manifest was complete or the executor of the
	// work lacked rights.
	frozen, denied bool
}

// manifest is what one entry of spec.workload.manifests means, without its bytes.
type manifest struct {
	ordinal         int
	gvk             schema.GroupVersionKind
	namespace, name string
	// resource is where the object is served; its Resource is empty while that is not known.
	resource   schema.GroupVersionResource
	namespaced bool
	// err says why the manifest cannot be applied at all, whoever asks; nil when it can.
	err error
	// option and owned come from the rest of the spec, for a manifest that is mapped.
	option option
	owned  bool
	// wish identifies all that decides how the object is to look.
	wish wish
	// refused says which condition rules cannot be evaluated, and why; they are not among those of the option.
	refused []string
	// reads identifies what is read for the hub: feedback rules and condition rules.
	reads digest
}

// mapped reports whether it is known which object the manifest means.
func (m *manifest) mapped() bool { return m.resource.Resource != "" }

// decoded reports whether the manifest has a kind and a name.
func (m *manifest) decoded() bool { return m.gvk.Kind != "" && m.name != "" }

// id is the identity of the object; meaningful when the manifest is mapped.
func (m *manifest) id() identity {
	return identity{
		Group: m.resource.Group, Resource: m.resource.Resource,
		Namespace: m.namespace, Name: m.name,
	}
}

// entry is how the object stands in the list of applied resources.
func (m *manifest) entry(uid string) workv1.AppliedManifestResourceMeta {
	return workv1.AppliedManifestResourceMeta{
		ResourceIdentifier: workv1.ResourceIdentifier(m.id()),
		Version:            m.resource.Version,
		UID:                uid,
	}
}

// meta is how the manifest stands in the status of the work.
func (m *manifest) meta() workv1.ManifestResourceMeta {
	if !m.decoded() {
		return workv1.ManifestResourceMeta{Ordinal: int32(m.ordinal)} //nolint:gosec // a list index
	}
	return workv1.ManifestResourceMeta{
		Ordinal: int32(m.ordinal), //nolint:gosec // a list index
		Group:   m.gvk.Group, Version: m.gvk.Version, Kind: m.gvk.Kind,
		Resource: m.resource.Resource, Namespace: m.namespace, Name: m.name,
	}
}

// couldBe reports whether the manifest may mean the tracked object, as far as it could be read: what it does not say
// matches everything. So an entry that an unreadable manifest may stand for is kept.
func (m *manifest) couldBe(entry workv1.AppliedManifestResourceMeta) bool {
	if m.mapped() {
		return m.id() == entryIdentity(entry)
	}
	if m.gvk.Version != "" && m.gvk.Group != entry.Group {
		return false
	}
	if m.name != "" && m.name != entry.Name {
		return false
	}
	return m.namespace == "" || entry.Namespace == "" || m.namespace == entry.Namespace
}

// parseManifest reads kind, namespace and name; what cannot be read leaves an error and whatever could be.
func parseManifest(ordinal int, raw []byte) manifest {
	m := manifest{ordinal: ordinal}
	object, err := decodeObject(raw)
	if object == nil {
		m.err = fmt.Errorf("the manifest cannot be decoded: %w", err)
		return m
	}
	m.gvk = object.GroupVersionKind()
	m.namespace, m.name = object.GetNamespace(), object.GetName()
	switch {
	case err != nil:
		m.err = fmt.Errorf("the manifest cannot be decoded: %w", err)
		m.gvk.Kind = ""
	case m.gvk.Kind == "" || m.gvk.Version == "":
		m.gvk.Kind = ""
		m.err = errors.New("the manifest cannot be decoded: it needs apiVersion and kind")
	case m.name == "" && object.GetGenerateName() != "":
		m.err = errors.New("the manifest has metadata.generateName, which is not supported: set metadata.name")
	case m.name == "":
		m.err = errors.New("the manifest has no metadata.name")
	}
	return m
}

// decodeObject decodes a manifest. When it is JSON but no Kubernetes object, the error comes with what there is.
func decodeObject(raw []byte) (*unstructured.Unstructured, error) {
	object := &unstructured.Unstructured{}
	err := object.UnmarshalJSON(raw)
	if err == nil {
		return object, nil
	}
	content := map[string]any{}
	if json.Unmarshal(raw, &content) != nil || content == nil {
		return nil, err
	}
	return &unstructured.Unstructured{Object: content}, err
}

// resolve finds out where the kind of the manifest is served, and what the rest of the spec says about the object.
func (m *manifest) resolve(mapper meta.RESTMapper, spec *workv1.ManifestWorkSpec) {
	mapping, err := mapper.RESTMapping(m.gvk.GroupKind(), m.gvk.Version)
	switch {
	case meta.IsNoMatchError(err):
		m.err = unservedError{kind: m.gvk.Kind}
		return
	case err != nil:
		m.err = fmt.Errorf("looking up where the API server serves the kind %s: %w", m.gvk, err)
		return
	}
	m.err = nil
	m.resource = mapping.Resource
	m.namespaced = mapping.Scope.Name() == meta.RESTScopeNameNamespace
	if !m.namespaced {
		m.namespace = ""
	}
	if m.namespaced && m.namespace == "" {
		m.err = fmt.Errorf("the manifest has no metadata.namespace, but %s live in a namespace", m.resource.Resource)
	}
	m.option = optionFor(spec.ManifestConfigs, m.id())
	m.owned = ownedBy(spec.DeleteOption, m.id())
	m.wish = wishOf(m, spec.Workload.Manifests[m.ordinal].Raw)
	m.option.rules, m.refused = feedback.UsableRules(m.gvk, m.option.rules, reservedConditions()...)
	m.reads = readsOf(&m.option)
}

// refuseDuplicates refuses each manifest that means the same object as one before it: the two would undo each other's
// writes for ever. The versions of a kind are the same objects.
func refuseDuplicates(manifests []manifest) {
	first := map[identity]int{}
	for i := range manifests {
		m := &manifests[i]
		if duplicate := (duplicateError{}); errors.As(m.err, &duplicate) {
			m.err = nil
		}
		if !m.mapped() || m.err != nil {
			continue
		}
		if at, twice := first[m.id()]; twice {
			m.err = duplicateError{first: at, gvk: m.gvk, other: manifests[at].gvk, id: m.id()}
			continue
		}
		first[m.id()] = i
	}
}

// duplicateError says that a manifest means the same object as an earlier one.
type duplicateError struct {
	first      int
	gvk, other schema.GroupVersionKind
	id         identity
}

// Error begins with the text of the work contract, section 5.2.
func (e duplicateError) Error() string {
	return fmt.Sprintf("duplicate manifest for resource %s/%s with resource type %s.%s: "+
		"the manifest with the ordinal %d means the same object, as %s; remove one of them",
		e.id.Namespace, e.id.Name, e.gvk.GroupVersion(), e.gvk.Kind, e.first, e.other.GroupVersion())
}

// unservedError says that the spoke serves no such kind, at least not yet.
type unservedError struct{ kind string }

// Error is the text that the contract wants in the status.
func (e unservedError) Error() string {
	return fmt.Sprintf("the server doesn't have a resource type %q", e.kind)
}

// wishOf digests what decides how the object is to look: the bytes of the manifest, whether it is owned, its strategy.
func wishOf(m *manifest, raw []byte) wish {
	sum := sha256.New()
	writePart(sum, raw)
	writePart(sum, fmt.Append(nil, m.owned))
	strategy, _ := json.Marshal(m.option.strategy)
	writePart(sum, strategy)
	return wish{content: digest(sum.Sum(nil))}
}

// writePart adds one part to a digest so that parts cannot run into each other.
func writePart(sum hash.Hash, part []byte) {
	_, _ = fmt.Fprintf(sum, "%d:", len(part))
	_, _ = sum.Write(part)
}

// digestOf digests a value as JSON; maps digest the same in any order. An empty value has the zero digest.
func digestOf(value any) digest {
	raw, err := json.Marshal(value)
	if err != nil || string(raw) == "null" {
		return digest{}
	}
	return sha256.Sum256(raw)
}
