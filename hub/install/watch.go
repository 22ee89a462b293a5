package install

import (
	"context"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	clusterv1beta2 "open-cluster-management.io/api/cluster/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	ctrlreconcile "sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/spokelet/spokelet/hub/fleet"
	"github.com/spokelet/spokelet/internal/addonapi"
	"github.com/spokelet/spokelet/internal/decode"
	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/internal/reconcile"
)

// Name is the name of the controller.
const Name = "hub.install"

type queue = workqueue.TypedRateLimitingInterface[ctrlreconcile.Request]

// SetupWithManager adds the controller and its watches to the manager.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	lifetime := builder.WithPredicates(predicate.Or[client.Object](
		reconcile.CreatedOrDeleted(), reconcile.DeletionStarted(), predicate.LabelChangedPredicate{}))
	edited := builder.WithPredicates(predicate.GenerationChangedPredicate{})
	b := ctrl.NewControllerManagedBy(mgr).Named(Name).WithOptions(reconcile.Options(r.Workers)).
		Watches(r.AddOns.WatchedClusterManagementAddOn(), r.ofClusterManagementAddOn()).
		Watches(r.AddOns.WatchedAddOn(), r.ofAddOn()).
		Watches(&clusterv1beta1.PlacementDecision{}, r.ofDecision()).
		Watches(&clusterv1beta1.Placement{}, r.ofPlacement()).
		Watches(&clusterv1.ManagedCluster{}, r.ofCluster()).
		WatchesMetadata(&corev1.Namespace{}, handler.EnqueueRequestsFromMapFunc(r.onCluster), lifetime).
		Watches(&clusterv1beta2.ManagedClusterSet{}, handler.EnqueueRequestsFromMapFunc(r.all), edited).
		Watches(&clusterv1beta2.ManagedClusterSetBinding{}, handler.EnqueueRequestsFromMapFunc(r.all), edited)
	if r.Gates != nil {
		b = r.watchPolicies(b)
	}
	return b.Complete(r)
}

// changes are the handlers of one kind for which creation, update and deletion are one function; old is nil for a
// creation, and new for a deletion.
func changes(change func(ctx context.Context, older, newer client.Object, q queue)) handler.Funcs {
	return handler.Funcs{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, q queue) { change(ctx, nil, e.Object, q) },
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, q queue) { change(ctx, e.Object, nil, q) },
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q queue) { change(ctx, e.ObjectOld, e.ObjectNew, q) },
	}
}

// ofClusterManagementAddOn maps a ClusterManagementAddOn to its add-ons on all clusters that have or need them, when it
// changes where these are.
func (r *Reconciler) ofClusterManagementAddOn() handler.Funcs {
	return changes(func(ctx context.Context, older, newer client.Object, q queue) {
		if older != nil && (newer == nil || !sameScope(older, newer)) {
			r.forget(ctx, addonapi.StrategyOf(older).Placements...)
		}
		switch {
		case newer == nil:
			q.Add(ofFleet(older.GetName()))
			return
		case older != nil && sameScope(older, newer):
			if !maps.Equal(older.GetAnnotations(), newer.GetAnnotations()) {
				q.Add(ofFleet(newer.GetName()))
			}
			return
		}
		name := newer.GetName()
		r.memory.restart(name)
		q.Add(ofFleet(name))
		r.existing(ctx, name, q)
		for _, placement := range addonapi.StrategyOf(newer).Placements {
			var pages clusterv1beta1.PlacementDecisionList
			if err := r.Client.List(ctx, &pages, client.InNamespace(placement.Namespace), client.UnsafeDisableDeepCopy,
				client.MatchingLabels{names.LabelPlacement: placement.Name}); err != nil {
				log.FromContext(ctx).Error(err, "finding the clusters of an add-on", "addon", name)
			}
			for i := range pages.Items {
				add(q, []string{name}, addonapi.SelectedClusters(&pages.Items[i]))
			}
		}
	})
}

// sameScope reports whether two copies of a ClusterManagementAddOn are managed alike and list the same placements.
func sameScope(older, newer client.Object) bool {
	return older.GetUID() == newer.GetUID() && addonapi.Managed(older) == addonapi.Managed(newer) &&
		older.GetDeletionTimestamp().IsZero() == newer.GetDeletionTimestamp().IsZero() &&
		equality.Semantic.DeepEqual(addonapi.StrategyOf(older), addonapi.StrategyOf(newer))
}

// existing adds requests for all add-ons of a name.
func (r *Reconciler) existing(ctx context.Context, name string, q queue) {
	err := r.AddOns.EachAddOn(ctx, func(addon client.Object) {
		q.Add(ctrlreconcile.Request{NamespacedName: client.ObjectKeyFromObject(addon)})
	}, client.MatchingFields{addonapi.IndexName: name}, decode.Metadata)
	if err != nil {
		log.FromContext(ctx).Error(err, "finding the clusters of an add-on", "addon", name)
	}
}

// ofAddOn maps an add-on to itself, and to the removal of add-ons of its name.
func (r *Reconciler) ofAddOn() handler.Funcs {
	return changes(func(_ context.Context, older, newer client.Object, q queue) {
		switch {
		case newer == nil:
			r.memory.gone(older.GetName(), older.GetNamespace())
			q.Add(ctrlreconcile.Request{NamespacedName: client.ObjectKeyFromObject(older)})
			q.Add(ofFleet(older.GetName()))
		case older == nil || !sameOwnership(older, newer):
			r.memory.note(client.ObjectKeyFromObject(newer), r.Clock.Now())
			q.Add(ctrlreconcile.Request{NamespacedName: client.ObjectKeyFromObject(newer)})
			q.Add(ofFleet(newer.GetName()))
		}
	})
}

// sameOwnership reports whether two copies of an add-on have the same labels, owners and copied annotations, and are
// both being deleted or not.
func sameOwnership(older, newer client.Object) bool {
	return older.GetDeletionTimestamp().IsZero() == newer.GetDeletionTimestamp().IsZero() &&
		maps.Equal(older.GetLabels(), newer.GetLabels()) &&
		equality.Semantic.DeepEqual(older.GetOwnerReferences(), newer.GetOwnerReferences()) &&
		maps.Equal(copiedOf(older.GetAnnotations()), copiedOf(newer.GetAnnotations()))
}

// ofDecision maps a change of a PlacementDecision to the clusters that it adds, and to the removal of add-ons from
// those that it drops.
func (r *Reconciler) ofDecision() handler.Funcs {
	return changes(func(ctx context.Context, older, newer client.Object, q queue) {
		was, is := ofPage(older), ofPage(newer)
		if was.placement == is.placement {
			r.decided(ctx, was, is, q)
			return
		}
		r.decided(ctx, was, page{object: newer, placement: was.placement}, q)
		r.decided(ctx, page{placement: is.placement}, is, q)
	})
}

// page holds what a PlacementDecision contributes to a placement.
type page struct {
	// object is the PlacementDecision; nil when it is gone.
	object    client.Object
	placement types.NamespacedName
	clusters  []string
}

func ofPage(o client.Object) page {
	if o == nil {
		return page{}
	}
	key, ok := placementOf(o)
	if !ok {
		return page{object: o}
	}
	return page{o, key, addonapi.SelectedClusters(o)}
}

// decided adds the requests that follow from clusters that a PlacementDecision added to a placement or dropped.
func (r *Reconciler) decided(ctx context.Context, was, is page, q queue) {
	placement := is.placement
	if placement.Name == "" {
		return
	}
	addons := r.addonsOf(ctx, placement)
	if len(addons) == 0 {
		return
	}
	add(q, addons, difference(is.clusters, was.clusters))
	now := r.Clock.Now()
	written := now // A PlacementDecision that is gone has no time of its last write.
	if is.object != nil {
		written = fleet.LastWritten(is.object)
	}
	for _, cluster := range difference(was.clusters, is.clusters) {
		managed, err := r.cluster(ctx, cluster)
		available := err == nil && droppedWhileAvailable(managed, r.memory.availableSince(managed), written)
		for _, addon := range addons {
			r.memory.drop(types.NamespacedName{Namespace: cluster, Name: addon}, placement, available, now)
		}
	}
	r.wake(addons, q)
}

// ofPlacement maps a Placement to the removal of its add-ons, when its status or what people decide about it changes.
func (r *Reconciler) ofPlacement() handler.Funcs {
	return changes(func(ctx context.Context, older, newer client.Object, q queue) {
		placement, edited := newer, true
		if newer == nil {
			placement = older
			r.forget(ctx, client.ObjectKeyFromObject(older))
		} else if older != nil {
			edited = older.GetGeneration() != newer.GetGeneration() ||
				!maps.Equal(older.GetAnnotations(), newer.GetAnnotations())
		}
		addons := r.addonsOf(ctx, client.ObjectKeyFromObject(placement))
		if !edited {
			r.wake(addons, q)
			return
		}
		for _, addon := range addons {
			q.Add(ofFleet(addon))
		}
	})
}

// forget forgets what Placements have decided that are gone, and that no add-on lists any more: tools that deploy name
// another one in each release.
func (r *Reconciler) forget(ctx context.Context, placements ...types.NamespacedName) {
	for _, placement := range placements {
		if len(r.addonsOf(ctx, placement)) > 0 {
			continue
		}
		r.memory.forgetPlacement(placement)
		if err := r.Placements.Forget(ctx, placement); err != nil {
			log.FromContext(ctx).Error(err, "forgetting a placement", "placement", placement)
		}
	}
}

// wake adds the removal of those add-ons of which a cluster may be unselected.
func (r *Reconciler) wake(addons []string, q queue) {
	for _, addon := range addons {
		if r.memory.pending(addon) {
			q.Add(ofFleet(addon))
		}
	}
}

// all maps a change of a set of clusters, or of a binding, to the removal of all add-ons: it explains removals.
func (r *Reconciler) all(ctx context.Context, _ client.Object) []ctrlreconcile.Request {
	var requests []ctrlreconcile.Request
	err := r.AddOns.EachClusterManagementAddOn(ctx, func(cma client.Object) {
		if addonapi.StrategyOf(cma).ByPlacements {
			requests = append(requests, ofFleet(cma.GetName()))
		}
	}, decode.LeaveOut)
	if err != nil {
		log.FromContext(ctx).Error(err, "finding the add-ons that placements install")
	}
	return requests
}

// addonsOf returns the names of the add-ons that a Placement installs.
func (r *Reconciler) addonsOf(ctx context.Context, placement types.NamespacedName) []string {
	var addons []string
	err := r.AddOns.EachClusterManagementAddOn(ctx, func(cma client.Object) {
		addons = append(addons, cma.GetName())
	}, client.MatchingFields{addonapi.IndexPlacement: placement.String()}, decode.LeaveOut)
	if err != nil {
		log.FromContext(ctx).Error(err, "finding the add-ons of a placement", "placement", placement)
	}
	return addons
}

// ofCluster maps a cluster to its add-ons.
func (r *Reconciler) ofCluster() handler.Funcs {
	return changes(func(ctx context.Context, older, newer client.Object, q queue) {
		was, _ := older.(*clusterv1.ManagedCluster)
		is, _ := newer.(*clusterv1.ManagedCluster)
		r.memory.see(was, is, r.Clock.Now())
		cluster := newer
		if newer == nil {
			cluster = older
		}
		lives := older != nil && newer != nil && accepted(older) == accepted(newer) &&
			older.GetDeletionTimestamp().IsZero() == newer.GetDeletionTimestamp().IsZero()
		if !lives {
			for _, req := range r.onCluster(ctx, cluster) {
				q.Add(req)
			}
		} else if !maps.Equal(copiedOf(older.GetAnnotations()), copiedOf(newer.GetAnnotations())) {
			r.there(ctx, cluster.GetName(), q)
		}
		if !lives || !sameHealth(older, newer) || !maps.Equal(older.GetLabels(), newer.GetLabels()) {
			for _, addon := range r.memory.waiting(cluster.GetName()) {
				q.Add(ofFleet(addon))
			}
		}
	})
}

// accepted reports whether the hub accepts a cluster.
func accepted(o client.Object) bool {
	cluster, is := o.(*clusterv1.ManagedCluster)
	return is && cluster.Spec.HubAcceptsClient
}

// there adds requests for the add-ons that a cluster has.
func (r *Reconciler) there(ctx context.Context, cluster string, q queue) {
	err := r.AddOns.EachAddOn(ctx, func(addon client.Object) {
		q.Add(ctrlreconcile.Request{NamespacedName: client.ObjectKeyFromObject(addon)})
	}, client.InNamespace(cluster), decode.Metadata)
	if err != nil {
		log.FromContext(ctx).Error(err, "finding the add-ons of a cluster", "cluster", cluster)
	}
}

// sameHealth reports whether two copies of a cluster are alike in what decides whether it is reachable.
func sameHealth(older, newer client.Object) bool {
	was, ok1 := older.(*clusterv1.ManagedCluster)
	is, ok2 := newer.(*clusterv1.ManagedCluster)
	return ok1 && ok2 && available(was) == available(is) && (healthTaint(was) == nil) == (healthTaint(is) == nil)
}

// onCluster maps a cluster, or its namespace, to the add-ons that Placements install on it.
func (r *Reconciler) onCluster(ctx context.Context, o client.Object) []ctrlreconcile.Request {
	selecting, err := r.placementsOf(ctx, o.GetName())
	if err != nil {
		log.FromContext(ctx).Error(err, "finding the placements that select a cluster", "cluster", o.GetName())
		return nil
	}
	var requests []ctrlreconcile.Request
	for placement := range selecting {
		for _, addon := range r.addonsOf(ctx, placement) {
			requests = append(requests, ctrlreconcile.Request{
				NamespacedName: types.NamespacedName{Namespace: o.GetName(), Name: addon},
			})
		}
	}
	return requests
}

// ofFleet is the request for the removal of an add-on.
func ofFleet(addon string) ctrlreconcile.Request {
	return ctrlreconcile.Request{NamespacedName: types.NamespacedName{Name: addon}}
}

// add adds a request for each add-on on each cluster.
func add(q queue, addons, clusters []string) {
	for _, addon := range addons {
		for _, cluster := range clusters {
			q.Add(ctrlreconcile.Request{NamespacedName: types.NamespacedName{Namespace: cluster, Name: addon}})
		}
	}
}

// difference returns the names in a that are not in b.
func difference(a, b []string) []string {
	if slices.Equal(a, b) {
		return nil
	}
	known := make(map[string]struct{}, len(b))
	for _, name := range b {
		known[name] = struct{}{}
	}
	var only []string
	for _, name := range a {
		if _, found := known[name]; !found {
			only = append(only, name)
		}
	}
	return only
}
