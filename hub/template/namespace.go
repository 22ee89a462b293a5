package template

import (
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// moveNamespace moves an object to the install namespace of the configuration, if it has one (docs/reference/hub.md,
// "Decoration of workloads"). Objects in namespaces of Kubernetes stay there, because they work nowhere else.
func (r *rendering) moveNamespace(u *unstructured.Unstructured) {
	to := r.in.installNamespace()
	if to == "" {
		return
	}
	if namespace := u.GetNamespace(); namespace != "" && !ofKubernetes(namespace) {
		u.SetNamespace(to)
	}
	if isNamespace(u) && !ofKubernetes(u.GetName()) {
		u.SetName(to)
	}
	if isBinding(u) {
		moveSubjects(u, to)
	}
}

// moveSubjects moves the ServiceAccounts of a binding; users and groups have no namespace.
func moveSubjects(u *unstructured.Unstructured, to string) {
	subjects, _ := u.Object["subjects"].([]any)
	for _, item := range subjects {
		subject, ok := item.(map[string]any)
		if !ok || subject["kind"] != "ServiceAccount" {
			continue
		}
		if from, _ := subject["namespace"].(string); !ofKubernetes(from) {
			subject["namespace"] = to
		}
	}
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
