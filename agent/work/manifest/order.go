package manifest

import (
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

const (
	// rankOther is the rank of every kind that the table does not know, all custom resources among them.
	rankOther = 1000
	// rankUnknown is the rank of a manifest without a kind.
	rankUnknown = 1001
)

// Rank returns the place of a kind in the order of applying, by its name only (docs/reference/work.md, "Order of
// applying"): kinds that others need come first.
func Rank(kind string) int {
	if kind == "" {
		return rankUnknown
	}
	// The plain plural is right for all kinds that have a place, and for others it does not matter.
	resource, _ := meta.UnsafeGuessKindToResource(schema.GroupVersionKind{Kind: kind})
	return place(resource.Resource)
}

// ResourceRank is Rank for a resource, because the list of applied resources has no kinds. A resource of the same name
// in a group of its own ranks with the custom resources.
func ResourceRank(group, resource string) int {
	if strings.Contains(group, ".") && !strings.HasSuffix(group, ".k8s.io") {
		return rankOther
	}
	return place(resource)
}

// place is the table of both.
func place(resource string) int {
	switch resource {
	case "priorityclasses", "namespaces", "customresourcedefinitions", "storageclasses", "persistentvolumes",
		"podsecuritypolicies":
		return 0
	case "clusterroles", "clusterrolebindings", "roles", "rolebindings":
		return 1
	case "networkpolicies", "resourcequotas", "limitranges", "poddisruptionbudgets", "serviceaccounts":
		return 2
	case "secrets", "configmaps", "persistentvolumeclaims":
		return 3
	case "services":
		return 4
	case "daemonsets", "pods", "replicationcontrollers", "replicasets", "deployments", "horizontalpodautoscalers",
		"statefulsets", "jobs", "cronjobs":
		return 5
	case "apiservices", "mutatingwebhookconfigurations", "validatingwebhookconfigurations",
		"validatingadmissionpolicies", "validatingadmissionpolicybindings":
		return 6
	}
	return rankOther
}
