package token

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/spokelet/spokelet/internal/addonapi"
	"github.com/spokelet/spokelet/internal/reconcile"
	tokens "github.com/spokelet/spokelet/internal/token"
)

// Name is the name of the controller.
const Name = "hub.token"

// SetupWithManager adds the controller and its watches to the manager.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	workers := r.Workers
	if workers == 0 {
		workers = defaultWorkers
	}
	byLabel := handler.EnqueueRequestsFromMapFunc(ofInfrastructure)
	return ctrl.NewControllerManagedBy(mgr).Named(Name).WithOptions(reconcile.Options(workers)).
		For(r.AddOns.WatchedAddOn(), builder.WithPredicates(addOnChanges())).
		Watches(&corev1.ServiceAccount{}, byLabel).
		Watches(&rbacv1.Role{}, byLabel).
		Watches(&rbacv1.RoleBinding{}, byLabel).
		WatchesMetadata(&corev1.Namespace{}, handler.EnqueueRequestsFromMapFunc(r.ofCluster),
			builder.WithPredicates(predicate.LabelChangedPredicate{})).
		Watches(&clusterv1.ManagedCluster{}, handler.EnqueueRequestsFromMapFunc(r.ofCluster),
			builder.WithPredicates(acceptanceChanges())).
		Complete(r)
}

// ofInfrastructure maps an object to the add-on whose infrastructure it is. An update that removes the labels still
// finds it, because the old object is mapped, too.
func ofInfrastructure(_ context.Context, object client.Object) []ctrl.Request {
	have := object.GetLabels()
	addOn := have[tokens.LabelName]
	if addOn == "" || !labelled(object, addOn) {
		return nil
	}
	return reconcile.Request(object.GetNamespace(), addOn)
}

// ofCluster maps a cluster, or its namespace, to its add-ons with token infrastructure.
func (r *Reconciler) ofCluster(ctx context.Context, cluster client.Object) []ctrl.Request {
	return r.AddOns.Requests(ctx, concerns, client.InNamespace(cluster.GetName()))
}

// concerns reports whether an add-on has or needs token infrastructure.
func concerns(addOn *addonv1beta1.ManagedClusterAddOn) bool {
	return usesToken(addOn) || meta.FindStatusCondition(addOn.Status.Conditions, tokens.ConditionInfrastructure) != nil
}

// view is the part of an add-on that decisions depend on.
type view struct {
	uid              types.UID
	token, deleting  bool
	hook             bool
	status           metav1.ConditionStatus
	reason, message  string
	conditionPresent bool
}

// viewOf returns that part, and whether the infrastructure of the add-on is any of our business. It is called for every
// change of every add-on, so it converts none.
func viewOf(object client.Object) (view, bool) {
	v := view{
		uid: object.GetUID(), token: addonapi.HasDriver(object, tokens.Driver),
		deleting: object.GetDeletionTimestamp() != nil, hook: addonapi.HookRuns(object),
	}
	if c := meta.FindStatusCondition(addonapi.Conditions(object), tokens.ConditionInfrastructure); c != nil {
		v.conditionPresent, v.status, v.reason, v.message = true, c.Status, c.Reason, c.Message
	}
	return v, v.token || v.conditionPresent
}

// addOnChanges passes add-ons whose infrastructure may change, which are very few.
func addOnChanges() predicate.Predicate {
	relevant := func(object client.Object) bool {
		_, ok := viewOf(object)
		return ok
	}
	return predicate.Funcs{
		CreateFunc:  func(e event.CreateEvent) bool { return relevant(e.Object) },
		DeleteFunc:  func(e event.DeleteEvent) bool { return relevant(e.Object) },
		GenericFunc: func(event.GenericEvent) bool { return false },
		UpdateFunc: func(e event.UpdateEvent) bool {
			before, wasRelevant := viewOf(e.ObjectOld)
			after, isRelevant := viewOf(e.ObjectNew)
			return (wasRelevant || isRelevant) && before != after
		},
	}
}

// acceptanceChanges passes clusters that are created or deleted, or whose acceptance changes.
func acceptanceChanges() predicate.Predicate {
	return predicate.Funcs{
		GenericFunc: func(event.GenericEvent) bool { return false },
		UpdateFunc: func(e event.UpdateEvent) bool {
			before, isCluster := e.ObjectOld.(*clusterv1.ManagedCluster)
			after, alsoCluster := e.ObjectNew.(*clusterv1.ManagedCluster)
			return isCluster && alsoCluster && before.Spec.HubAcceptsClient != after.Spec.HubAcceptsClient
		},
	}
}
