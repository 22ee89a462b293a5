package install

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
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
	ctrlreconcile "sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/spokelet/spokelet/internal/addonapi"
	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/internal/reconcile"
)

// Name is the name of the controller.
const Name = "hub.install"

type queue = workqueue.TypedRateLimitingInterface[ctrlreconcile.Request]

// SetupWithManager adds the controller and its watches to the manager.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	byCluster := handler.EnqueueRequestsFromMapFunc(r.ofCluster)
	lifetime := builder.WithPredicates(predicate.Or[client.Object](
		reconcile.CreatedOrDeleted(), reconcile.DeletionStarted()))
	asked := builder.WithPredicates(predicate.Or[client.Object](
		predicate.GenerationChangedPredicate{}, predicate.AnnotationChangedPredicate{}))
	return ctrl.NewControllerManagedBy(mgr).Named(Name).WithOptions(reconcile.Options(r.Workers)).
		Watches(r.AddOns.WatchedClusterManagementAddOn(),
			handler.EnqueueRequestsFromMapFunc(r.ofClusterManagementAddOn), asked).
		Watches(r.AddOns.WatchedAddOn(), &handler.EnqueueRequestForObject{}, builder.WithPredicates(ownership())).
		Watches(&clusterv1beta1.PlacementDecision{}, r.ofDecision()).
		Watches(&clusterv1beta1.Placement{}, handler.EnqueueRequestsFromMapFunc(r.ofPlacement)).
		Watches(&clusterv1.ManagedCluster{}, byCluster, lifetime).
		WatchesMetadata(&corev1.Namespace{}, byCluster, lifetime).
		Complete(r)
}

// ofClusterManagementAddOn maps a ClusterManagementAddOn to its add-ons on all clusters that have or need them.
func (r *Reconciler) ofClusterManagementAddOn(ctx context.Context, o client.Object) []ctrlreconcile.Request {
	cma, err := addonapi.ClusterManagementAddOn(o)
	if err != nil {
		return nil
	}
	requests := r.existing(ctx, cma.Name)
	placements, err := r.placements(ctx, cma)
	if err != nil {
		log.FromContext(ctx).Error(err, "finding the clusters of an add-on", "addon", cma.Name)
	}
	for _, p := range placements {
		for _, decision := range p.decisions {
			requests = append(requests, keys([]string{cma.Name}, addonapi.SelectedClusters(decision))...)
		}
	}
	return requests
}

// existing returns requests for all add-ons of a name.
func (r *Reconciler) existing(ctx context.Context, addon string) []ctrlreconcile.Request {
	return r.AddOns.Requests(ctx, nil, client.MatchingFields{addonapi.IndexName: addon})
}

// ofDecision maps a change of a PlacementDecision to the clusters that it adds or drops, and to the add-ons that may be
// uninstalled now.
func (r *Reconciler) ofDecision() handler.Funcs {
	enqueue := func(ctx context.Context, q queue, decision client.Object, clusters []string) {
		name := decision.GetLabels()[names.LabelPlacement]
		if name == "" {
			return
		}
		addons := r.addonsOf(ctx, types.NamespacedName{Namespace: decision.GetNamespace(), Name: name})
		for _, req := range append(keys(addons, clusters), r.unselected(ctx, addons)...) {
			q.Add(req)
		}
	}
	return handler.Funcs{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, q queue) {
			enqueue(ctx, q, e.Object, addonapi.SelectedClusters(e.Object))
		},
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, q queue) {
			enqueue(ctx, q, e.Object, addonapi.SelectedClusters(e.Object))
		},
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q queue) {
			older, newer := addonapi.SelectedClusters(e.ObjectOld), addonapi.SelectedClusters(e.ObjectNew)
			if !equality.Semantic.DeepEqual(e.ObjectOld.GetLabels(), e.ObjectNew.GetLabels()) {
				enqueue(ctx, q, e.ObjectOld, older)
				enqueue(ctx, q, e.ObjectNew, newer)
				return
			}
			enqueue(ctx, q, e.ObjectNew, difference(older, newer))
		},
	}
}

// ofPlacement maps a Placement to the add-ons that may be uninstalled once its decisions are certain.
func (r *Reconciler) ofPlacement(ctx context.Context, o client.Object) []ctrlreconcile.Request {
	return r.unselected(ctx, r.addonsOf(ctx, client.ObjectKeyFromObject(o)))
}

// addonsOf returns the names of the add-ons that a Placement installs.
func (r *Reconciler) addonsOf(ctx context.Context, placement types.NamespacedName) []string {
	cmas, err := r.AddOns.ListClusterManagementAddOns(ctx,
		client.MatchingFields{addonapi.IndexPlacement: placement.String()})
	if err != nil {
		log.FromContext(ctx).Error(err, "finding the add-ons of a placement", "placement", placement)
	}
	addons := make([]string, len(cmas))
	for i, cma := range cmas {
		addons[i] = cma.Name
	}
	return addons
}

// unselected returns requests for the add-ons of these names on clusters that no Placement selects.
func (r *Reconciler) unselected(ctx context.Context, addons []string) []ctrlreconcile.Request {
	var requests []ctrlreconcile.Request
	for _, addon := range addons {
		cma, err := r.AddOns.GetClusterManagementAddOn(ctx, addon)
		if err != nil {
			continue
		}
		placements, err := r.placements(ctx, cma)
		if err != nil {
			continue
		}
		selected := map[string]bool{}
		for _, p := range placements {
			for _, decision := range p.decisions {
				for _, cluster := range addonapi.SelectedClusters(decision) {
					selected[cluster] = true
				}
			}
		}
		for _, req := range r.existing(ctx, addon) {
			if !selected[req.Namespace] {
				requests = append(requests, req)
			}
		}
	}
	return requests
}

// ofCluster maps a cluster, or its namespace, to the add-ons that Placements install on it.
func (r *Reconciler) ofCluster(ctx context.Context, o client.Object) []ctrlreconcile.Request {
	var decisions clusterv1beta1.PlacementDecisionList
	if err := r.Client.List(ctx, &decisions, client.UnsafeDisableDeepCopy,
		client.MatchingFields{addonapi.IndexCluster: o.GetName()}); err != nil {
		log.FromContext(ctx).Error(err, "finding the placements that select a cluster", "cluster", o.GetName())
		return nil
	}
	var requests []ctrlreconcile.Request
	for i := range decisions.Items {
		placement := types.NamespacedName{
			Namespace: decisions.Items[i].Namespace, Name: decisions.Items[i].Labels[names.LabelPlacement],
		}
		requests = append(requests, keys(r.addonsOf(ctx, placement), []string{o.GetName()})...)
	}
	return requests
}

// keys returns a request for each add-on on each cluster.
func keys(addons, clusters []string) []ctrlreconcile.Request {
	requests := make([]ctrlreconcile.Request, 0, len(addons)*len(clusters))
	for _, addon := range addons {
		for _, cluster := range clusters {
			requests = append(requests, ctrlreconcile.Request{
				NamespacedName: types.NamespacedName{Namespace: cluster, Name: addon},
			})
		}
	}
	return requests
}

// difference returns the names that are in only one of the lists.
func difference(a, b []string) []string {
	count := map[string]int{}
	for _, name := range a {
		count[name] |= 1
	}
	for _, name := range b {
		count[name] |= 2
	}
	var only []string
	for name, in := range count {
		if in != 3 {
			only = append(only, name)
		}
	}
	return only
}

// ownership passes add-ons that are created or deleted, or whose labels or owner references change.
func ownership() predicate.Predicate {
	return predicate.Or[client.Object](reconcile.DeletionStarted(), predicate.LabelChangedPredicate{}, predicate.Funcs{
		UpdateFunc: func(e event.UpdateEvent) bool {
			return !equality.Semantic.DeepEqual(e.ObjectOld.GetOwnerReferences(), e.ObjectNew.GetOwnerReferences())
		},
	})
}
