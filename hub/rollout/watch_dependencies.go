package rollout

import (
	"context"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// ofPolicy maps a policy to the ClusterManagementAddOn of its name, and to those that depend on it.
func (r *Reconciler) ofPolicy(ctx context.Context, o client.Object) (requests []ctrl.Request) {
	for _, name := range r.Gates.Known(ctx).Above(o.GetName()) {
		requests = append(requests, request(name))
	}
	return requests
}

// ofDependency maps an add-on to the ClusterManagementAddOns of those on its cluster that depend on it.
func (r *Reconciler) ofDependency(ctx context.Context, o client.Object) []ctrl.Request {
	requests := r.Gates.OnCluster(ctx, o.GetNamespace(), r.Gates.Dependents(ctx, o.GetName()))
	for i := range requests {
		requests[i] = request(requests[i].Name)
	}
	return requests
}

// ofNewName maps a ClusterManagementAddOn that comes or goes to those that depend on it.
func (r *Reconciler) ofNewName(ctx context.Context, o client.Object) (requests []ctrl.Request) {
	for _, name := range r.Gates.Dependents(ctx, o.GetName()) {
		requests = append(requests, request(name))
	}
	return requests
}
