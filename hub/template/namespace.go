package template

import (
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/sets"
)

// home holds what a template has in namespaces, before anything moves.
type home struct {
	// namespaces are those with objects of the template.
	namespaces sets.Set[string]
	// accounts are the names of its ServiceAccounts.
	accounts sets.Set[string]
}

// homeOf looks at the objects of a template with their variables replaced.
func homeOf(objects []*unstructured.Unstructured) home {
	h := home{namespaces: sets.New[string](), accounts: sets.New[string]()}
	for _, u := range objects {
		namespace, name := identityOf(u.Object)
		if isNamespace(u) {
			namespace = name
		}
		if namespace != "" && !ofKubernetes(namespace) {
			h.namespaces.Insert(namespace)
		}
		if u.GetKind() == "ServiceAccount" {
			h.accounts.Insert(name)
		}
	}
	return h
}

// has reports whether a ServiceAccount that a binding names belongs to the agent, and so moves with it. One in a
// namespace of Kubernetes does not, and neither does one of another client: in a namespace where the template has
// nothing, with a name that the template does not use.
func (h home) has(namespace, name string) bool {
	switch {
	case ofKubernetes(namespace):
		return false
	case namespace == "", len(h.namespaces) == 0, name == "default":
		return true
	}
	return h.namespaces.Has(namespace) || h.accounts.Has(name)
}

// moved returns an object as it is in the install namespace of the configuration (docs/reference/hub.md, "Install
// namespace"); the object itself stays as it is. Objects in namespaces of Kubernetes stay there, because they work
// nowhere else.
func (h home) moved(u *unstructured.Unstructured, to string) *unstructured.Unstructured {
	namespace, name := identityOf(u.Object)
	var field string
	switch {
	case namespace != "" && namespace != to && !ofKubernetes(namespace):
		field = "namespace"
	case isNamespace(u) && name != "" && name != to && !ofKubernetes(name):
		field = "name"
	}
	subjects := h.movedSubjects(u, to)
	if field == "" && subjects == nil {
		return u
	}
	object := maps.Clone(u.Object)
	if field != "" {
		metadata, _ := object["metadata"].(map[string]any)
		metadata = maps.Clone(metadata)
		metadata[field] = to
		object["metadata"] = metadata
	}
	if subjects != nil {
		object["subjects"] = subjects
	}
	return &unstructured.Unstructured{Object: object}
}

// movedSubjects returns the subjects of a binding after the move; nil when none moves. Users and groups have no
// namespace.
func (h home) movedSubjects(u *unstructured.Unstructured, to string) []any {
	from, _ := u.Object["subjects"].([]any)
	if len(from) == 0 || !isBinding(u) {
		return nil
	}
	var subjects []any
	for i, item := range from {
		subject, ok := item.(map[string]any)
		if !ok || subject["kind"] != "ServiceAccount" {
			continue
		}
		namespace, _ := subject["namespace"].(string)
		name, _ := subject["name"].(string)
		if namespace == to || !h.has(namespace, name) {
			continue
		}
		if subjects == nil {
			subjects = slices.Clone(from)
		}
		subject = maps.Clone(subject)
		subject["namespace"] = to
		subjects[i] = subject
	}
	return subjects
}

// identityOf returns the namespace and the name of an object.
func identityOf(object map[string]any) (namespace, name string) {
	metadata, _ := object["metadata"].(map[string]any)
	namespace, _ = metadata["namespace"].(string)
	name, _ = metadata["name"].(string)
	return namespace, name
}

func isNamespace(u *unstructured.Unstructured) bool {
	return u.GetAPIVersion() == "v1" && u.GetKind() == "Namespace"
}

func isBinding(u *unstructured.Unstructured) bool {
	kind := u.GroupVersionKind()
	return kind.Group == "rbac.authorization.k8s.io" && (kind.Kind == "RoleBinding" || kind.Kind == "ClusterRoleBinding")
}

// ofKubernetes reports whether a namespace belongs to Kubernetes; such names start with "kube-" by convention.
func ofKubernetes(namespace string) bool { return strings.HasPrefix(namespace, "kube-") }
