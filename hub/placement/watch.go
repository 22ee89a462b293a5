package placement

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
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
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/spokelet/spokelet/hub/fleet"
	"github.com/spokelet/spokelet/internal/decode"
	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/internal/reconcile"
)

// Name is the name of the controller.
const Name = "hub.placement"

// batchPeriod is how long a Placement waits for further changes of clusters and decisions, so that a fleet that joins
// is decided a few times and not once per cluster.
const batchPeriod = 200 * time.Millisecond

// SetupWithManager adds the controller and its watches to the manager.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	instructed := ctrlpredicate.Or[client.Object](
		ctrlpredicate.GenerationChangedPredicate{}, ctrlpredicate.AnnotationChangedPredicate{},
		ctrlpredicate.NewPredicateFuncs(r.memory.altered))
	changed := builder.WithPredicates(ctrlpredicate.GenerationChangedPredicate{})
	if r.Passes != nil {
		r.Passes.Alike = r.memory.decidesAlike
	}
	return ctrl.NewControllerManagedBy(mgr).Named(Name).WithOptions(reconcile.OptionsInTurns(r.Workers, &r.turns)).
		WatchesRawSource(source.Func(func(_ context.Context, q queue) error {
			r.queue = q
			return nil
		})).
		For(&clusterv1beta1.Placement{}, builder.WithPredicates(instructed)).
		Watches(&clusterv1beta1.PlacementDecision{}, r.batched(ofDecision)).
		Watches(&clusterv1.ManagedCluster{}, r.batched(r.ofCluster)).
		Watches(&clusterv1beta2.ManagedClusterSet{}, r.batched(r.ofSet), changed).
		Watches(&clusterv1beta2.ManagedClusterSetBinding{}, r.batched(r.ofBinding), changed).
		Complete(r)
}

// touched are Placements with what the change of an object touches for each, as Passes has it.
type touched map[types.NamespacedName]string

// mapping maps the change of an object to Placements; older is nil for a new object and newer for a deleted one.
type mapping func(ctx context.Context, older, newer client.Object) touched

// batched enqueues the Placements of a change after batchPeriod.
func (r *Reconciler) batched(mapped mapping) handler.EventHandler {
	add := func(ctx context.Context, q queue, older, newer client.Object) {
		for key, what := range mapped(ctx, older, newer) {
			r.Passes.Ask(key, what, r.Clock.Now())
			q.AddAfter(ctrl.Request{NamespacedName: key}, batchPeriod)
		}
		was, _ := older.(*clusterv1.ManagedCluster)
		is, _ := newer.(*clusterv1.ManagedCluster)
		if is != nil {
			r.Passes.See(is.Name, is)
		} else if was != nil {
			r.Passes.See(was.Name, nil)
		}
	}
	return handler.Funcs{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, q queue) { add(ctx, q, nil, e.Object) },
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q queue) { add(ctx, q, e.ObjectOld, e.ObjectNew) },
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, q queue) { add(ctx, q, e.Object, nil) },
	}
}

// ofDecision maps a PlacementDecision to its Placement, and to the one that its label named before. A person may have
// removed the label.
func ofDecision(_ context.Context, older, newer client.Object) touched {
	all := touched{}
	for _, o := range []client.Object{older, newer} {
		if o == nil {
			continue
		}
		if name := o.GetLabels()[names.LabelPlacement]; name != "" {
			all[types.NamespacedName{Namespace: o.GetNamespace(), Name: name}] = fleet.NoCluster
		}
		if owner := metav1.GetControllerOf(o); owner != nil && owner.Kind == "Placement" {
			all[types.NamespacedName{Namespace: o.GetNamespace(), Name: owner.Name}] = fleet.NoCluster
		}
	}
	return all
}

// ofCluster maps a cluster to the Placements whose decisions its change may alter.
func (r *Reconciler) ofCluster(_ context.Context, older, newer client.Object) touched {
	was, _ := older.(*clusterv1.ManagedCluster)
	is, _ := newer.(*clusterv1.ManagedCluster)
	if was != nil && is != nil && was.ResourceVersion == is.ResourceVersion {
		return nil
	}
	return r.memory.concernedBy(was, is)
}

// ofSet maps a cluster set to the Placements in namespaces that it is bound to.
func (r *Reconciler) ofSet(_ context.Context, older, newer client.Object) touched {
	if newer == nil {
		newer = older
	}
	return r.memory.boundTo(newer.GetName())
}

// ofBinding maps a binding to the Placements of its namespace.
func (r *Reconciler) ofBinding(ctx context.Context, older, newer client.Object) touched {
	if newer == nil {
		newer = older
	}
	var list clusterv1beta1.PlacementList
	namespace := newer.GetNamespace()
	if err := r.Client.List(ctx, &list, client.InNamespace(namespace), client.UnsafeDisableDeepCopy,
		decode.Metadata); err != nil {
		log.FromContext(ctx).Error(err, "listing the placements of a namespace", "namespace", namespace)
		return nil
	}
	all := touched{}
	for i := range list.Items {
		all[client.ObjectKeyFromObject(&list.Items[i])] = fleet.EachCluster
	}
	return all
}
