package cluster

import (
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/spokelet/spokelet/internal/reconcile"
)

// decideShared plans the ClusterRoles that all clusters share: they exist as long as a cluster does.
func decideShared(have map[string]*rbacv1.ClusterRole, wanted bool) []step {
	var steps []step
	for _, want := range sharedRoles() {
		role := have[want.Name]
		switch {
		case wanted:
			steps = append(steps, ensureRole(role, want)...)
		case ours(role, ""):
			steps = append(steps, step{Verb: reconcile.Delete, Before: role})
		}
	}
	return steps
}
