package cluster

import (
	"context"
	"fmt"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/internal/reconcile"
)

// decideShared plans the roles that all clusters share: there, and as they shall be, while there is a cluster.
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

func (r *Reconciler) anyCluster(ctx context.Context) (bool, error) {
	var list clusterv1.ManagedClusterList
	if err := r.Client.List(ctx, &list, client.Limit(1)); err != nil {
		return false, fmt.Errorf("listing clusters: %w", err)
	}
	return len(list.Items) > 0, nil
}

// told lists the conditions that a status write changed, for the log.
func told(before, after *clusterv1.ManagedCluster) string {
	var changed []string
	for _, c := range after.Status.Conditions {
		have := meta.FindStatusCondition(before.Status.Conditions, c.Type)
		if have == nil || !equality.Semantic.DeepEqual(*have, c) {
			changed = append(changed, fmt.Sprintf("%s=%s (%s)", c.Type, c.Status, c.Reason))
		}
	}
	return strings.Join(changed, ", ")
}
