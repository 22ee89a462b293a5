package manifest

import (
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	workv1 "open-cluster-management.io/api/work/v1"
)

// ID identifies an object on the spoke in all versions of its API.
type ID struct {
	Group, Resource, Name, Namespace string
}

// String names the object for a person: "configmaps default/x", "deployments.apps default/x" or "namespaces x".
func (id ID) String() string {
	kind := schema.GroupResource{Group: id.Group, Resource: id.Resource}.String()
	if id.Namespace == "" {
		return kind + " " + id.Name
	}
	return kind + " " + id.Namespace + "/" + id.Name
}

// IDOf is the object of an entry of the list of applied resources.
func IDOf(entry workv1.AppliedManifestResourceMeta) ID {
	return ID{Group: entry.Group, Resource: entry.Resource, Namespace: entry.Namespace, Name: entry.Name}
}

// ResourceOf is the resource and version under which an entry of the list of applied resources was applied.
func ResourceOf(entry workv1.AppliedManifestResourceMeta) schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: entry.Group, Version: entry.Version, Resource: entry.Resource}
}

// glob reports whether text matches pattern, in which each star stands for any text, the empty one included, and every
// other character for itself.
func glob(pattern, text string) bool {
	parts := strings.Split(pattern, "*")
	if len(parts) == 1 {
		return pattern == text
	}
	first, last := parts[0], parts[len(parts)-1]
	if len(text) < len(first)+len(last) || !strings.HasPrefix(text, first) || !strings.HasSuffix(text, last) {
		return false
	}
	text = text[len(first) : len(text)-len(last)]
	for _, part := range parts[1 : len(parts)-1] {
		at := strings.Index(text, part)
		if at < 0 {
			return false
		}
		text = text[at+len(part):]
	}
	return true
}
