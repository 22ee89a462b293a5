package deploy

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	workv1 "open-cluster-management.io/api/work/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/spokelet/spokelet/hub/addon"
	"github.com/spokelet/spokelet/internal/addonapi"
	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/internal/reconcile"
	"github.com/spokelet/spokelet/internal/token"
)

// Index adds the field indexes of this package to a cache; it must be called once, before the cache starts. The indexes
// of addonapi.Client are needed, too.
func (r *Reconciler) Index(ctx context.Context, indexer client.FieldIndexer) error {
	if err := reconcile.AddIndexes(ctx, indexer,
		reconcile.FieldIndex{Object: r.AddOns.WatchedAddOn(), Field: indexHost, Keys: hostKeys, Everywhere: true},
		reconcile.FieldIndex{Object: &workv1.ManifestWork{}, Field: indexHosted, Keys: hostedKeys},
	); err != nil || !r.AllNamespaces {
		return err
	}
	return reconcile.AddIndexes(ctx, indexer, reconcile.FieldIndex{
		Object: &rbacv1.ClusterRoleBinding{}, Field: indexEverywhere, Keys: everywhereKeys,
	})
}

// SetupWithManager adds the controller and its watches to the manager.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	workers := r.Workers
	if workers == 0 {
		workers = defaultWorkers
	}
	b := ctrl.NewControllerManagedBy(mgr).Named(Name).WithOptions(reconcile.Options(workers)).
		For(r.AddOns.WatchedAddOn()).
		Watches(&workv1.ManifestWork{}, handler.EnqueueRequestsFromMapFunc(ofWork)).
		Watches(&rbacv1.RoleBinding{}, handler.EnqueueRequestsFromMapFunc(ofBinding),
			builder.WithPredicates(bindingDrift())).
		Watches(&rbacv1.RoleBinding{}, reconcile.Delayed(sharedPeriod, r.ofSharedBinding),
			builder.WithPredicates(bindingDrift())).
		Watches(&rbacv1.RoleBinding{}, handler.EnqueueRequestsFromMapFunc(r.ofNewBinding),
			builder.WithPredicates(onlyCreated())).
		WatchesMetadata(&corev1.Namespace{}, handler.EnqueueRequestsFromMapFunc(r.ofNamespace),
			builder.WithPredicates(predicate.Or[client.Object](predicate.LabelChangedPredicate{}, onlyCreated()))).
		Watches(&clusterv1.ManagedCluster{}, handler.EnqueueRequestsFromMapFunc(r.ofCluster),
			builder.WithPredicates(clusterChange()))
	if r.AllNamespaces {
		b = b.Watches(&rbacv1.ClusterRoleBinding{}, handler.EnqueueRequestsFromMapFunc(ofBinding),
			builder.WithPredicates(bindingDrift())).
			Watches(&rbacv1.ClusterRoleBinding{}, handler.EnqueueRequestsFromMapFunc(r.ofNewBinding),
				builder.WithPredicates(onlyCreated()))
	}
	if r.Watch != nil {
		b = r.Watch(b)
	}
	if r.Gates != nil {
		b = r.watchDependents(b)
	}
	return b.Complete(r)
}

// ofWork maps a work to its add-on, which is in another namespace if the work is for a hosting cluster.
func ofWork(_ context.Context, work client.Object) []ctrl.Request {
	labels := work.GetLabels()
	addOn := labels[names.LabelAddonName]
	if addOn == "" {
		return nil
	}
	namespace := cmp.Or(labels[names.LabelAddonNamespace], work.GetNamespace())
	return reconcile.Request(namespace, addOn)
}

// addOnOf returns the add-on that the labels of a binding name, and the cluster: empty for a binding for all clusters.
func addOnOf(binding client.Object) (cluster, addOn string) {
	labels := binding.GetLabels()
	if addOn = labels[token.LabelName]; addOn != "" {
		return binding.GetNamespace(), addOn
	}
	addOn = labels[names.LabelAddonName]
	if _, template := labels[names.LabelAddonTemplate]; addOn == "" || !template {
		return "", ""
	}
	for _, owner := range binding.GetOwnerReferences() {
		if owner.Kind == "ManagedClusterAddOn" && binding.GetNamespace() != "" {
			return binding.GetNamespace(), addOn
		}
	}
	return labels[names.LabelClusterName], addOn
}

// ofBinding maps a binding for one cluster to its add-on there.
func ofBinding(_ context.Context, binding client.Object) []ctrl.Request {
	cluster, addOn := addOnOf(binding)
	if cluster == "" {
		return nil
	}
	return reconcile.Request(cluster, addOn)
}

// sharedPeriod is how long the add-ons on all clusters wait for further changes of a binding for all clusters.
// Everybody who may write RoleBindings in one namespace can label one so, and must not cause a pass for each cluster
// with each change.
const sharedPeriod = 30 * time.Second

// ofSharedBinding maps a binding for all clusters to its add-on on all of them.
func (r *Reconciler) ofSharedBinding(ctx context.Context, binding client.Object) []ctrl.Request {
	cluster, addOn := addOnOf(binding)
	if cluster != "" || addOn == "" {
		return nil
	}
	return r.addOnsNamed(ctx, addOn)
}

// ofNewBinding maps a binding that appears to its add-on on one cluster, if the agent of that may have no roles: it was
// written in the moment in which they ended. It also maps the right to request tokens to its add-on.
func (r *Reconciler) ofNewBinding(ctx context.Context, binding client.Object) []ctrl.Request {
	requests := ofBinding(ctx, binding)
	if binding.GetLabels()[token.LabelName] != "" {
		return requests
	}
	if len(requests) != 1 {
		return nil
	}
	cluster, err := r.clusterOf(ctx, facts{}, requests[0].Namespace)
	if err != nil || cluster == nil || !cluster.Spec.HubAcceptsClient {
		return requests
	}
	addOn, err := r.AddOns.GetAddOn(ctx, requests[0].NamespacedName)
	if err != nil || addOn.DeletionTimestamp != nil {
		return requests
	}
	return nil
}

// onlyCreated passes objects that appear.
func onlyCreated() predicate.Predicate {
	return predicate.Funcs{
		DeleteFunc:  func(event.DeleteEvent) bool { return false },
		UpdateFunc:  func(event.UpdateEvent) bool { return false },
		GenericFunc: func(event.GenericEvent) bool { return false },
	}
}

// ofCluster maps a cluster, or the namespace of its name, to its add-ons and to those that it hosts.
func (r *Reconciler) ofCluster(ctx context.Context, cluster client.Object) []ctrl.Request {
	return append(r.AddOns.Requests(ctx, nil, client.InNamespace(cluster.GetName())),
		r.AddOns.Requests(ctx, nil, client.MatchingFields{indexHost: cluster.GetName()})...)
}

// ofNamespace maps a namespace that becomes, or ceases to be, that of a cluster to its add-ons, and to those with a
// binding there or that want one: agents of other clusters have none in the namespace of a cluster.
func (r *Reconciler) ofNamespace(ctx context.Context, namespace client.Object) []ctrl.Request {
	requests := append(r.ofCluster(ctx, namespace), r.asksFor.requests(namespace.GetName())...)
	var list rbacv1.RoleBindingList
	err := r.Client.List(ctx, &list, client.InNamespace(namespace.GetName()), client.UnsafeDisableDeepCopy)
	if err != nil {
		log.FromContext(ctx).Error(err, "finding the bindings of add-ons in a namespace")
		return requests
	}
	shared := map[string]bool{}
	for i := range list.Items {
		requests = append(requests, ofBinding(ctx, &list.Items[i])...)
		if cluster, addOn := addOnOf(&list.Items[i]); cluster == "" && addOn != "" && !shared[addOn] {
			shared[addOn] = true
			requests = append(requests, r.addOnsNamed(ctx, addOn)...)
		}
	}
	return requests
}

// addOnsNamed returns requests for the add-ons of a name on all clusters.
func (r *Reconciler) addOnsNamed(ctx context.Context, name string) []ctrl.Request {
	return r.AddOns.Requests(ctx, nil, client.MatchingFields{addonapi.IndexName: name})
}

// bindingDrift passes changes of bindings that others may have made. A created binding is ours, and other labels than
// ours say nothing.
func bindingDrift() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc:  func(event.CreateEvent) bool { return false },
		GenericFunc: func(event.GenericEvent) bool { return false },
		UpdateFunc: func(e event.UpdateEvent) bool {
			before, isBinding := anyBinding(e.ObjectOld)
			after, alsoBinding := anyBinding(e.ObjectNew)
			return isBinding && alsoBinding && (labelsDiffer(before, after) ||
				!equality.Semantic.DeepEqual(before.OwnerReferences, after.OwnerReferences) ||
				!equality.Semantic.DeepEqual(before.Subjects, after.Subjects))
		},
	}
}

// labelsDiffer reports whether one of the labels of bindings that this package reads or writes changed.
func labelsDiffer(before, after *rbacv1.RoleBinding) bool {
	return slices.ContainsFunc(
		[]string{names.LabelAddonName, names.LabelAddonTemplate, names.LabelClusterName, token.LabelName},
		func(label string) bool {
			was, had := before.Labels[label]
			is, has := after.Labels[label]
			return was != is || had != has
		})
}

// clusterChange passes changes of clusters that affect rendering or the health of add-ons.
func clusterChange() predicate.Predicate {
	return predicate.Funcs{
		UpdateFunc: func(e event.UpdateEvent) bool {
			before, isCluster := e.ObjectOld.(*clusterv1.ManagedCluster)
			after, alsoCluster := e.ObjectNew.(*clusterv1.ManagedCluster)
			if !isCluster || !alsoCluster {
				return false
			}
			return clusterDiffers(before, after)
		},
	}
}

// clusterDiffers reports whether two copies of a cluster differ in what affects rendering or the health of add-ons.
func clusterDiffers(before, after *clusterv1.ManagedCluster) bool {
	return !sameStanding(before, after) ||
		annotationsDiffer(before, after, names.AnnotationImageRegistries, names.AnnotationHosts) ||
		!maps.Equal(statuses(before), statuses(after)) || !addon.SameFacts(before, after)
}

// sameStanding reports whether two copies of a cluster, nil where there is none, are of one cluster, which is accepted
// and being deleted in both or in none.
func sameStanding(a, b *clusterv1.ManagedCluster) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.UID == b.UID && (a.DeletionTimestamp == nil) == (b.DeletionTimestamp == nil) && isAccepted(a) == isAccepted(b)
}

// annotationsDiffer reports whether one of these annotations of a cluster differs.
func annotationsDiffer(before, after *clusterv1.ManagedCluster, keys ...string) bool {
	return slices.ContainsFunc(keys, func(key string) bool {
		was, had := before.Annotations[key]
		is, has := after.Annotations[key]
		return had != has || was != is
	})
}

// statuses returns the statuses of the conditions of a cluster by their types.
func statuses(cluster *clusterv1.ManagedCluster) map[string]metav1.ConditionStatus {
	all := make(map[string]metav1.ConditionStatus, len(cluster.Status.Conditions))
	for i := range cluster.Status.Conditions {
		all[cluster.Status.Conditions[i].Type] = cluster.Status.Conditions[i].Status
	}
	return all
}

// indexHost finds the add-ons that name a cluster as their host.
const indexHost = "spokelet.io/hosting-cluster"

// hostKeys files an add-on under its hosting cluster.
func hostKeys(o client.Object) []string {
	if host := o.GetAnnotations()[names.AnnotationHostingCluster]; host != "" {
		return []string{host}
	}
	return nil
}

// indexHosted finds the works of an add-on on hosting clusters.
const indexHosted = "spokelet.io/hosted-work"

// hostedKeys files a work of hosted mode under its add-on.
func hostedKeys(o client.Object) []string {
	labels := o.GetLabels()
	namespace, name := labels[names.LabelAddonNamespace], labels[names.LabelAddonName]
	if namespace == "" || name == "" {
		return nil
	}
	return []string{types.NamespacedName{Namespace: namespace, Name: name}.String()}
}
