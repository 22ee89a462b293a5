package placement

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
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

// Reconciler turns Placements into PlacementDecisions.
type Reconciler struct {
	// Client reads from the cache of the manager and writes.
	Client client.Client
	// Clock tells the time.
	Clock clock.PassiveClock
	// Workers is how many Placements have a pass running at the same time.
	Workers int
}

// SetupWithManager registers the reconciler and what wakes it.
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

// Reconcile brings the decisions of one Placement to what its spec and the clusters ask for.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	f, err := r.observe(ctx, req.NamespacedName)
	if err != nil {
		return reconcile.Retry(err).Settle(f.now)
	}
	if f.placement == nil {
		return ctrl.Result{}, nil
	}
	p := decide(f)
	failed := r.act(ctx, p.pages)
	before, after := f.placement, f.placement.DeepCopy()
	conclude(f, p, failed, &after.Status)
	changed, err := reconcile.PatchStatus(ctx, r.Client, before, after)
	if changed && err == nil {
		log.FromContext(ctx).Info("the placement decided", "clusters", after.Status.NumberOfSelectedClusters)
	}
	outcome := reconcile.FromError(failed).And(reconcile.FromError(client.IgnoreNotFound(err)))
	return outcome.And(reconcile.DoneUntil(p.selection.wake)).Settle(f.now)
}

// observe reads the facts about one Placement; none when it is gone, going, or somebody else's.
func (r *Reconciler) observe(ctx context.Context, key types.NamespacedName) (facts, error) {
	f := facts{now: r.Clock.Now()}
	placement, err := reconcile.Get(ctx, r.Client, key, &clusterv1beta1.Placement{})
	if err != nil || placement == nil {
		return f, err
	}
	foreign := placement.Annotations[clusterv1beta1.PlacementDisableAnnotation] == "true"
	if foreign || !placement.DeletionTimestamp.IsZero() {
		return f, nil
	}
	var pages clusterv1beta1.PlacementDecisionList
	if err := r.Client.List(ctx, &pages, client.InNamespace(key.Namespace),
		client.MatchingLabels{names.LabelPlacement: key.Name}); err != nil {
		return f, fmt.Errorf("listing the decisions of Placement %s: %w", key, err)
	}
	f.pages = reconcile.Pointers(pages.Items)
	var clusters clusterv1.ManagedClusterList
	if err := r.Client.List(ctx, &clusters, client.UnsafeDisableDeepCopy); err != nil {
		return f, fmt.Errorf("listing clusters: %w", err)
	}
	f.clusters = reconcile.Pointers(clusters.Items)
	if err := r.observeSets(ctx, &f, key.Namespace); err != nil {
		return f, err
	}
	f.placement = placement
	return f, nil
}

// observeSets reads which cluster sets are bound to a namespace, and what they are.
func (r *Reconciler) observeSets(ctx context.Context, f *facts, namespace string) error {
	var bindings clusterv1beta2.ManagedClusterSetBindingList
	if err := r.Client.List(ctx, &bindings, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("listing the ManagedClusterSetBindings of namespace %s: %w", namespace, err)
	}
	f.bindings = reconcile.Pointers(bindings.Items)
	var sets clusterv1beta2.ManagedClusterSetList
	if err := r.Client.List(ctx, &sets, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("listing ManagedClusterSets: %w", err)
	}
	f.sets = make(map[string]*clusterv1beta2.ManagedClusterSet, len(sets.Items))
	for i := range sets.Items {
		f.sets[sets.Items[i].Name] = &sets.Items[i]
	}
	return nil
}

// ofPlacement maps a page to its Placement.
func ofPlacement(_ context.Context, o client.Object) []ctrlreconcile.Request {
	name := o.GetLabels()[names.LabelPlacement]
	if name == "" {
		return nil
	}
	return reconcile.Request(o.GetNamespace(), name)
}

// all maps a cluster, or a set of clusters, to every Placement: each may select it.
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

// selectable lets clusters through whose selection may change.
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
