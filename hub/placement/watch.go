package placement

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	clusterv1beta2 "open-cluster-management.io/api/cluster/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	ctrlpredicate "sigs.k8s.io/controller-runtime/pkg/predicate"
	ctrlreconcile "sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/internal/reconcile"
)

// Name is the name of the controller.
const Name = "hub.placement"

// SetupWithManager adds the controller and its watches to the manager.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	asked := ctrlpredicate.Or[client.Object](
		ctrlpredicate.GenerationChangedPredicate{}, ctrlpredicate.AnnotationChangedPredicate{})
	return ctrl.NewControllerManagedBy(mgr).Named(Name).WithOptions(reconcile.Options(r.Workers)).
		For(&clusterv1beta1.Placement{}, builder.WithPredicates(asked)).
		Watches(&clusterv1beta1.PlacementDecision{}, handler.EnqueueRequestsFromMapFunc(ofPlacement)).
		Watches(&clusterv1.ManagedCluster{}, handler.EnqueueRequestsFromMapFunc(r.all),
			builder.WithPredicates(selectable())).
		Watches(&clusterv1beta2.ManagedClusterSet{}, handler.EnqueueRequestsFromMapFunc(r.all),
			builder.WithPredicates(ctrlpredicate.GenerationChangedPredicate{})).
		Watches(&clusterv1beta2.ManagedClusterSetBinding{}, handler.EnqueueRequestsFromMapFunc(r.inNamespace),
			builder.WithPredicates(ctrlpredicate.GenerationChangedPredicate{})).
		Complete(r)
}

// ofPlacement maps a PlacementDecision to its Placement.
func ofPlacement(_ context.Context, o client.Object) []ctrlreconcile.Request {
	name := o.GetLabels()[names.LabelPlacement]
	if name == "" {
		return nil
	}
	return reconcile.Request(o.GetNamespace(), name)
}

// all maps a cluster, or a cluster set, to every Placement: each may select it.
func (r *Reconciler) all(ctx context.Context, _ client.Object) []ctrlreconcile.Request {
	return r.placements(ctx)
}

// inNamespace maps a binding to the Placements of its namespace.
func (r *Reconciler) inNamespace(ctx context.Context, o client.Object) []ctrlreconcile.Request {
	return r.placements(ctx, client.InNamespace(o.GetNamespace()))
}

func (r *Reconciler) placements(ctx context.Context, opts ...client.ListOption) []ctrlreconcile.Request {
	var list clusterv1beta1.PlacementList
	if err := r.Client.List(ctx, &list, append(opts, client.UnsafeDisableDeepCopy)...); err != nil {
		log.FromContext(ctx).Error(err, "listing placements")
		return nil
	}
	return reconcile.Requests(reconcile.Pointers(list.Items))
}

// selectable passes changes of clusters that may affect their selection.
func selectable() ctrlpredicate.Predicate {
	return ctrlpredicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		older, ok1 := e.ObjectOld.(*clusterv1.ManagedCluster)
		newer, ok2 := e.ObjectNew.(*clusterv1.ManagedCluster)
		return ok1 && ok2 && (older.DeletionTimestamp.IsZero() != newer.DeletionTimestamp.IsZero() ||
			!equality.Semantic.DeepEqual(older.Labels, newer.Labels) ||
			!equality.Semantic.DeepEqual(older.Spec.Taints, newer.Spec.Taints) ||
			!slices.Equal(older.Status.ClusterClaims, newer.Status.ClusterClaims))
	}}
}
