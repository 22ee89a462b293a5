package prune

import (
	"cmp"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/spokelet/spokelet/agent/work/inventory"
	"github.com/spokelet/spokelet/agent/work/manifest"
)

// deletionOrder sorts entries in the order of their deletion, which is the reverse of the order of applying.
func deletionOrder(entries []workv1.AppliedManifestResourceMeta) []workv1.AppliedManifestResourceMeta {
	order := slices.Clone(entries)
	slices.SortFunc(order, func(a, b workv1.AppliedManifestResourceMeta) int {
		return cmp.Or(
			cmp.Compare(manifest.ResourceRank(b.Group, b.Resource), manifest.ResourceRank(a.Group, a.Resource)),
			inventory.CompareEntries(a, b))
	})
	return order
}

// rankEnd is how many entries at the beginning of a list in deletion order are of one rank.
func rankEnd(order []workv1.AppliedManifestResourceMeta) int {
	for i := range order {
		if manifest.ResourceRank(order[i].Group, order[i].Resource) !=
			manifest.ResourceRank(order[0].Group, order[0].Resource) {
			return i
		}
	}
	return len(order)
}

// isPermission reports whether an entry is a role or a binding.
func isPermission(entry workv1.AppliedManifestResourceMeta) bool {
	return manifest.ResourceRank(entry.Group, entry.Resource) == manifest.ResourceRank(rbacv1.GroupName, "roles")
}
