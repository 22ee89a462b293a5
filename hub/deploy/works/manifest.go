package works

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	workv1 "open-cluster-management.io/api/work/v1"

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

// ManifestConfigs returns the feedback rules and update strategies of all works: those that the health probe needs, and
// those of the author, merged by object (docs/reference/hub.md, "Options of the works").
func ManifestConfigs(probe, author []workv1.ManifestConfigOption) []workv1.ManifestConfigOption {
	merged := slices.Clone(probe)
	for i := range author {
		option := author[i].DeepCopy()
		at := slices.IndexFunc(merged, func(other workv1.ManifestConfigOption) bool {
			return other.ResourceIdentifier == option.ResourceIdentifier
		})
		if at < 0 {
			merged = append(merged, *option)
			continue
		}
		mergeOption(&merged[at], option)
	}
	return merged
}

// mergeOption merges the option of an author into an existing one for the same object.
func mergeOption(into, option *workv1.ManifestConfigOption) {
	for _, rule := range option.FeedbackRules {
		at := slices.IndexFunc(into.FeedbackRules, func(other workv1.FeedbackRule) bool {
			return other.Type == rule.Type
		})
		if at < 0 {
			into.FeedbackRules = append(into.FeedbackRules, rule)
			continue
		}
		for _, path := range rule.JsonPaths {
			if !slices.ContainsFunc(into.FeedbackRules[at].JsonPaths, func(other workv1.JsonPath) bool {
				return other.Name == path.Name
			}) {
				into.FeedbackRules[at].JsonPaths = append(into.FeedbackRules[at].JsonPaths, path)
			}
		}
	}
	if option.UpdateStrategy != nil {
		into.UpdateStrategy = option.UpdateStrategy
	}
	if len(option.ConditionRules) > 0 {
		into.ConditionRules = option.ConditionRules
	}
	if option.FeedbackScrapeType != "" {
		into.FeedbackScrapeType = option.FeedbackScrapeType
	}
}

// orphans returns the delete option that orphans the objects that are marked to outlive the add-on; nil when there are
// none (docs/reference/hub.md, "Objects that outlive the add-on"). The objects of all sides are in it, so that an
// object that moves to the other side stays where it was.
func orphans(objects []*unstructured.Unstructured) *workv1.DeleteOption {
	defined := definedPlurals(objects)
	var rules []workv1.OrphaningRule
	for _, object := range objects {
		if _, marked := object.GetAnnotations()[names.AnnotationDeletionOrphan]; !marked {
			continue
		}
		kind := object.GroupVersionKind().GroupKind()
		for _, resource := range plurals(kind.Kind, defined[kind.String()]) {
			rules = append(rules, workv1.OrphaningRule{
				Group: kind.Group, Resource: resource, Namespace: object.GetNamespace(), Name: object.GetName(),
			})
		}
	}
	if len(rules) == 0 {
		return nil
	}
	return &workv1.DeleteOption{
		PropagationPolicy: workv1.DeletePropagationPolicyTypeSelectivelyOrphan,
		SelectivelyOrphan: &workv1.SelectivelyOrphan{OrphaningRules: rules},
	}
}

// definedPlurals returns the plurals of the kinds that CustomResourceDefinitions among the objects define.
func definedPlurals(objects []*unstructured.Unstructured) map[string]string {
	defined := map[string]string{}
	for _, object := range objects {
		if object.GetKind() != "CustomResourceDefinition" {
			continue
		}
		group, _, _ := unstructured.NestedString(object.Object, "spec", "group")
		kind, _, _ := unstructured.NestedString(object.Object, "spec", "names", "kind")
		plural, _, _ := unstructured.NestedString(object.Object, "spec", "names", "plural")
		if kind != "" && plural != "" {
			defined[kind+"."+group] = plural
		}
	}
	return defined
}

// plurals returns the possible resources of a kind. The hub does not know the APIs of a managed cluster, and a rule for
// a resource that does not exist does no harm.
func plurals(kind, defined string) []string {
	if defined != "" {
		return []string{defined}
	}
	singular := strings.ToLower(kind)
	last := singular[len(singular)-1:]
	switch {
	case singular == "endpoints":
		return []string{singular}
	case strings.HasSuffix(singular, "ay"), strings.HasSuffix(singular, "ey"), strings.HasSuffix(singular, "oy"):
		return []string{singular + "s", singular[:len(singular)-1] + "ies"}
	case last == "y":
		return []string{singular[:len(singular)-1] + "ies"}
	case last == "s", last == "x", last == "z":
		return []string{singular + "es", singular}
	case strings.HasSuffix(singular, "ch"), strings.HasSuffix(singular, "sh"):
		return []string{singular + "es", singular + "s"}
	}
	return []string{singular + "s"}
}
