package rollout

import (
	"context"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/spokelet/spokelet/internal/addonapi"
	"github.com/spokelet/spokelet/internal/addonconfig"
	"github.com/spokelet/spokelet/internal/gate"
	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/internal/objectwatch"
	"github.com/spokelet/spokelet/internal/policies"
	"github.com/spokelet/spokelet/internal/reconcile"
)

// batchPeriod is how long a ClusterManagementAddOn waits for further changes, so that a rollout over many clusters is
// planned a few times and not once per change.
const batchPeriod = 200 * time.Millisecond

type queue = workqueue.TypedRateLimitingInterface[ctrl.Request]

// SetupWithManager adds the controller to the manager of the hub.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	controller := ctrl.NewControllerManagedBy(mgr).Named(Name).WithOptions(reconcile.Options(1)).
		Watches(r.AddOns.WatchedClusterManagementAddOn(), ofManagement()).
		Watches(r.AddOns.WatchedAddOn(), batched(r.ofAddOn)).
		// What a killed hub manager left behind is found by the list at the start.
		Watches(&appsv1.ControllerRevision{}, batched(ofRevision)).
		Watches(&clusterv1beta1.PlacementDecision{}, batched(r.ofDecision)).
		Watches(&clusterv1beta1.Placement{}, batched(r.ofPlacement), builder.WithPredicates(selectionChanged())).
		Watches(&clusterv1.ManagedCluster{}, batched(r.ofCluster), builder.WithPredicates(servesChanged()))
	for _, config := range r.Store.Watched() {
		controller = controller.Watches(config, handler.EnqueueRequestsFromMapFunc(r.ofConfig),
			builder.WithPredicates(predicate.GenerationChangedPredicate{}))
	}
	if r.Gates != nil {
		edited := builder.WithPredicates(predicate.GenerationChangedPredicate{})
		controller = controller.
			Watches(&policies.AddOnPolicy{}, handler.EnqueueRequestsFromMapFunc(r.ofPolicy),
				builder.WithPredicates(gate.RulesChanged())).
			Watches(r.AddOns.WatchedAddOn(), batched(r.ofDependency), builder.WithPredicates(gate.DependencyChanged())).
			Watches(r.AddOns.WatchedClusterManagementAddOn(), batched(r.ofNewName),
				builder.WithPredicates(reconcile.CreatedOrDeleted())).
			Watches(&policies.MaintenanceWindow{}, handler.EnqueueRequestsFromMapFunc(r.ofWindow), edited).
			Watches(&clusterv1.ManagedCluster{}, r.Gates.Moves(batchPeriod, r.ofMovedCluster),
				builder.WithPredicates(gate.PlaceChanged()))
	}
	if r.Changed != nil {
		controller = controller.WatchesRawSource(source.TypedChannel(r.Changed,
			handler.TypedEnqueueRequestsFromMapFunc(func(ctx context.Context, ref objectwatch.Ref) []ctrl.Request {
				return r.namedBy(ctx, addonconfig.KeyOf(ref))
			})))
	}
	return controller.Complete(r)
}

// batched enqueues the requests of mapped after batchPeriod.
func batched(mapped handler.MapFunc) handler.EventHandler {
	return reconcile.Delayed(batchPeriod, mapped)
}

// ofManagement enqueues a ClusterManagementAddOn at once when its spec changes, and after batchPeriod when only its
// status does.
func ofManagement() handler.EventHandler {
	key := func(o client.Object) ctrl.Request { return request(o.GetName()) }
	return handler.Funcs{
		CreateFunc: func(_ context.Context, e event.CreateEvent, q queue) { q.Add(key(e.Object)) },
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, q queue) {
			if e.ObjectOld.GetGeneration() != e.ObjectNew.GetGeneration() ||
				e.ObjectOld.GetAnnotations()[names.AnnotationLifecycle] !=
					e.ObjectNew.GetAnnotations()[names.AnnotationLifecycle] {
				q.Add(key(e.ObjectNew))
				return
			}
			q.AddAfter(key(e.ObjectNew), batchPeriod)
		},
		DeleteFunc: func(_ context.Context, e event.DeleteEvent, q queue) { q.Add(key(e.Object)) },
	}
}

// ofAddOn notes which add-on changed.
func (r *Reconciler) ofAddOn(_ context.Context, o client.Object) []ctrl.Request {
	r.members.Note(o)
	return []ctrl.Request{request(o.GetName())}
}

// ofRevision maps a stored content to the ClusterManagementAddOn that it is stored for.
func ofRevision(_ context.Context, o client.Object) []ctrl.Request {
	name := addonconfig.AddOnOf(o)
	if name == "" {
		return nil
	}
	return []ctrl.Request{request(name)}
}

func (r *Reconciler) ofDecision(ctx context.Context, o client.Object) []ctrl.Request {
	decision, ok := o.(*clusterv1beta1.PlacementDecision)
	if !ok {
		return nil
	}
	ref := addonapi.PlacementOf(decision)
	return r.AddOns.ManagementsBy(ctx, addonapi.IndexPlacement, addonapi.PlacementKey(ref.Namespace, ref.Name))
}

func (r *Reconciler) ofPlacement(ctx context.Context, o client.Object) []ctrl.Request {
	return r.AddOns.ManagementsBy(ctx, addonapi.IndexPlacement, addonapi.PlacementKey(o.GetNamespace(), o.GetName()))
}

// ofCluster maps a cluster to the ClusterManagementAddOns whose placements select it: one that gets no add-on any more
// is not awaited.
func (r *Reconciler) ofCluster(ctx context.Context, o client.Object) []ctrl.Request {
	var decisions clusterv1beta1.PlacementDecisionList
	err := r.Client.List(ctx, &decisions, client.UnsafeDisableDeepCopy,
		client.MatchingFields{addonapi.IndexCluster: o.GetName()})
	if err != nil {
		log.FromContext(ctx).Error(err, "finding the placements that select a cluster", "cluster", o.GetName())
	}
	var requests []ctrl.Request
	for i := range decisions.Items {
		requests = append(requests, r.ofDecision(ctx, &decisions.Items[i])...)
	}
	return requests
}

// servesChanged passes clusters that are accepted, denied or deleted. What is installed on a new one is an event.
func servesChanged() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc: func(event.CreateEvent) bool { return false },
		UpdateFunc: func(e event.UpdateEvent) bool {
			was, ok := e.ObjectOld.(*clusterv1.ManagedCluster)
			is, also := e.ObjectNew.(*clusterv1.ManagedCluster)
			return ok && also && (was.Spec.HubAcceptsClient != is.Spec.HubAcceptsClient ||
				was.DeletionTimestamp.IsZero() != is.DeletionTimestamp.IsZero())
		},
	}
}

// ofWindow maps a window to the ClusterManagementAddOns that it is for.
func (r *Reconciler) ofWindow(ctx context.Context, o client.Object) []ctrl.Request {
	window, is := o.(*policies.MaintenanceWindow)
	if !is {
		return nil
	}
	if len(window.Spec.AddOns) == 0 {
		return r.all(ctx)
	}
	requests := make([]ctrl.Request, 0, len(window.Spec.AddOns))
	for _, name := range window.Spec.AddOns {
		requests = append(requests, request(name))
	}
	return requests
}

// all returns requests for all ClusterManagementAddOns.
func (r *Reconciler) all(ctx context.Context) []ctrl.Request {
	definitions, err := r.AddOns.ListClusterManagementAddOns(ctx)
	if err != nil {
		log.FromContext(ctx).Error(err, "finding the ClusterManagementAddOns of a window")
	}
	requests := make([]ctrl.Request, 0, len(definitions))
	for _, d := range definitions {
		requests = append(requests, request(d.Name))
	}
	return requests
}

// ofMovedCluster maps a cluster of which windows know something else now to the ClusterManagementAddOns that these are
// for, and whose placements select it.
func (r *Reconciler) ofMovedCluster(
	ctx context.Context, o client.Object, windows []policies.MaintenanceWindow,
) []ctrl.Request {
	return slices.DeleteFunc(r.ofCluster(ctx, o), func(request ctrl.Request) bool {
		return !slices.ContainsFunc(windows, func(w policies.MaintenanceWindow) bool { return w.Spec.IsFor(request.Name) })
	})
}

// ofConfig maps a config to the ClusterManagementAddOns that name it, or whose add-ons do.
func (r *Reconciler) ofConfig(ctx context.Context, o client.Object) []ctrl.Request {
	return r.namedBy(ctx, addonconfig.ConfigKeyOf(o))
}

func (r *Reconciler) namedBy(ctx context.Context, key string) []ctrl.Request {
	return r.AddOns.ManagementRequests(ctx, addonconfig.IndexConfig, key)
}

func request(name string) ctrl.Request {
	return ctrl.Request{NamespacedName: types.NamespacedName{Name: name}}
}

// selectionChanged passes Placements that are created or deleted, whose spec changes, or whose status says something
// else about the selection.
func selectionChanged() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		was, ok := e.ObjectOld.(*clusterv1beta1.Placement)
		if !ok {
			return false
		}
		is, ok := e.ObjectNew.(*clusterv1beta1.Placement)
		return ok && (was.Generation != is.Generation || selectionDiffers(was, is))
	}}
}

// selectionDiffers reports whether the statuses of two versions of a Placement differ about the selection.
func selectionDiffers(was, is *clusterv1beta1.Placement) bool {
	return was.Status.NumberOfSelectedClusters != is.Status.NumberOfSelectedClusters ||
		!equality.Semantic.DeepEqual(was.Status.DecisionGroups, is.Status.DecisionGroups) ||
		slices.ContainsFunc([]string{
			clusterv1beta1.PlacementConditionMisconfigured, clusterv1beta1.PlacementConditionSatisfied, names.ConditionDecided,
		},
			func(kind string) bool {
				a, b := meta.FindStatusCondition(was.Status.Conditions, kind), meta.FindStatusCondition(is.Status.Conditions, kind)
				if a == nil || b == nil {
					return a != b
				}
				return a.Status != b.Status || a.Reason != b.Reason || a.Message != b.Message
			})
}
