package work

import (
	"cmp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	workv1 "open-cluster-management.io/api/work/v1"
)

const (
	// rankOther is the rank of every kind that the table does not know, all custom resources among them.
	rankOther = 1000
	// rankBroken is the rank of a manifest whose kind cannot be told.
	rankBroken = 1001
)

// rank returns the place of a kind in the order of applying, by its name only (work contract, section 2.5): what others
// build on comes first.
func rank(kind string) int {
	if kind == "" {
		return rankBroken
	}
	// The plain plural is right for all kinds that have a place, and for others it does not matter.
	resource, _ := meta.UnsafeGuessKindToResource(schema.GroupVersionKind{Kind: kind})
	return place(resource.Resource)
}

// resourceRank is the rank of a resource as rank gives it for its kind: of what was made no more is known than that.
// Another group may call a resource of its own the same; such a one is like all custom resources.
func resourceRank(group, resource string) int {
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

// deletionOrder sorts entries as they are to be deleted: in the reverse of the order of applying, so custom resources
// go before their definitions, and workloads before the rights and the namespaces that they need to clean up.
func deletionOrder(entries []workv1.AppliedManifestResourceMeta) []workv1.AppliedManifestResourceMeta {
	order := slices.Clone(entries)
	slices.SortFunc(order, func(a, b workv1.AppliedManifestResourceMeta) int {
		return cmp.Or(
			cmp.Compare(resourceRank(b.Group, b.Resource), resourceRank(a.Group, a.Resource)), compareEntries(a, b))
	})
	return order
}

// rankEnd is how many entries at the beginning of a list in deletion order are of one rank.
func rankEnd(order []workv1.AppliedManifestResourceMeta) int {
	for i := range order {
		if resourceRank(order[i].Group, order[i].Resource) != resourceRank(order[0].Group, order[0].Resource) {
			return i
		}
	}
	return len(order)
}
