package cluster

import (
	"context"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	workv1 "open-cluster-management.io/api/work/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	ctrlreconcile "sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	csrs "github.com/spokelet/spokelet/csr"
	"github.com/spokelet/spokelet/hub/cluster/meter"
	"github.com/spokelet/spokelet/internal/addonapi"
	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/internal/reconcile"
	"github.com/spokelet/spokelet/lease"
)

// Name is the name of the controller.
const Name = "hub.cluster"

// labelDelay is how long the labels of a cluster may lag behind the health of its add-ons. A change of labels wakes
// every Placement, and the agents of one cluster start at about the same time, so the changes of a moment are one
// write.
const labelDelay = time.Second

type queue = workqueue.TypedRateLimitingInterface[ctrlreconcile.Request]

// SetupWithManager adds the controller and its watches to the manager.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	byLabel := handler.EnqueueRequestsFromMapFunc(labelled)
	whenWorksMatter := handler.EnqueueRequestsFromMapFunc(r.worksMatter)
	foreign := &metav1.PartialObjectMetadata{}
	foreign.SetGroupVersionKind(workKind("ManifestWork"))
	b := ctrl.NewControllerManagedBy(mgr).Named(Name).WithOptions(reconcile.Options(r.Workers)).
		WatchesRawSource(source.Func(r.start)).
		For(&clusterv1.ManagedCluster{}).
		Watches(&clusterv1.ManagedCluster{}, handler.EnqueueRequestsFromMapFunc(shared),
			builder.WithPredicates(reconcile.CreatedOrDeleted())).
		WatchesMetadata(&corev1.Namespace{}, handler.EnqueueRequestsFromMapFunc(itself),
			builder.WithPredicates(predicate.Or[client.Object](
				// The record of a denial is an annotation.
				predicate.LabelChangedPredicate{}, predicate.AnnotationChangedPredicate{},
				reconcile.CreatedOrDeleted(), reconcile.DeletionStarted()))).
		Watches(&rbacv1.ClusterRole{}, byLabel).
		Watches(&rbacv1.ClusterRoleBinding{}, byLabel).
		Watches(&rbacv1.RoleBinding{}, byLabel).
		Watches(&coordinationv1.Lease{}, r.ofLease()).
		Watches(&certificatesv1.CertificateSigningRequest{}, byLabel, builder.WithPredicates(r.trustedRequests())).
		Watches(r.AddOns.WatchedAddOn(), r.ofAddOn(), builder.WithPredicates(addonChanges())).
		Watches(&workv1.ManifestWork{}, whenWorksMatter, builder.WithPredicates(reconcile.CreatedOrDeleted())).
		WatchesRawSource(source.Kind[client.Object](r.ForeignWorks, foreign, whenWorksMatter, reconcile.CreatedOrDeleted()))
	return r.watchQuiet(b, foreign).Complete(r)
}

// start notes the queue of the controller.
func (r *Reconciler) start(_ context.Context, requests queue) error {
	r.requests = requests
	return nil
}

// itself maps a namespace to the cluster of the same name.
func itself(_ context.Context, o client.Object) []ctrlreconcile.Request {
	return reconcile.Request("", o.GetName())
}

// shared maps every cluster to the request for the shared roles.
func shared(context.Context, client.Object) []ctrlreconcile.Request { return reconcile.Request("", "") }

// labelled maps an object to the cluster that its label names. Shared roles have an empty label, which maps to the
// request without a name.
func labelled(_ context.Context, o client.Object) []ctrlreconcile.Request {
	name, ok := o.GetLabels()[names.LabelClusterName]
	if !ok {
		return nil
	}
	return reconcile.Request("", name)
}

// worksMatter maps a ManifestWork to its cluster if the cluster waits for its works to go.
func (r *Reconciler) worksMatter(ctx context.Context, o client.Object) []ctrlreconcile.Request {
	var cluster clusterv1.ManagedCluster
	err := r.Client.Get(ctx, types.NamespacedName{Name: o.GetNamespace()}, &cluster, uncopied)
	if err == nil && cluster.DeletionTimestamp.IsZero() && cluster.Spec.HubAcceptsClient {
		return nil
	}
	return reconcile.Request("", o.GetNamespace())
}

// ofAddOn enqueues the cluster of an add-on: soon if only labels depend on the add-on, at once if the cluster waits
// for its add-ons to go, and later if only a reason is to be written again: the client that replaced it may not know
// for a while what we know, and would replace it as often.
func (r *Reconciler) ofAddOn() handler.EventHandler {
	add := func(ctx context.Context, o client.Object, q queue) {
		key := types.NamespacedName{Name: o.GetNamespace()}
		cluster, err := reconcile.Peek(ctx, r.Client, key, &clusterv1.ManagedCluster{})
		if err == nil && cluster != nil && cluster.DeletionTimestamp.IsZero() {
			q.AddAfter(ctrlreconcile.Request{NamespacedName: key}, labelDelay)
			return
		}
		q.Add(ctrlreconcile.Request{NamespacedName: key})
	}
	return handler.Funcs{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, q queue) { add(ctx, e.Object, q) },
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q queue) {
			if silenceReplaced(e) && health(e.ObjectOld) == health(e.ObjectNew) && e.ObjectNew.GetDeletionTimestamp().IsZero() {
				key := types.NamespacedName{Name: e.ObjectNew.GetNamespace()}
				q.AddAfter(ctrlreconcile.Request{NamespacedName: key}, overwriteDelay)
				return
			}
			add(ctx, e.ObjectNew, q)
		},
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, q queue) { add(ctx, e.Object, q) },
	}
}

// ofLease enqueues the cluster of a Lease, unless the Lease was only renewed: the pass at the former expiry reads the
// new renewTime.
func (r *Reconciler) ofLease() handler.EventHandler {
	add := func(o client.Object, q queue) {
		q.Add(ctrlreconcile.Request{NamespacedName: types.NamespacedName{Name: o.GetNamespace()}})
	}
	return handler.Funcs{
		CreateFunc: func(_ context.Context, e event.CreateEvent, q queue) { add(e.Object, q) },
		DeleteFunc: func(_ context.Context, e event.DeleteEvent, q queue) { add(e.Object, q) },
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q queue) {
			older, ok1 := e.ObjectOld.(*coordinationv1.Lease)
			newer, ok2 := e.ObjectNew.(*coordinationv1.Lease)
			if ok1 && ok2 && leaseMatters(older, newer, func() time.Duration { return r.grace(ctx, newer.Namespace) }) {
				add(newer, q)
			}
		},
	}
}

// leaseMatters reports whether a change of a lease is more than an ordinary renewal.
func leaseMatters(older, newer *coordinationv1.Lease, grace func() time.Duration) bool {
	return !onlyRenewed(older, newer) || clockConditionChanges(older, newer, grace)
}

// grace returns how long a cluster may be silent, as far as the cache knows.
func (r *Reconciler) grace(ctx context.Context, name string) time.Duration {
	var cluster clusterv1.ManagedCluster
	if err := r.Client.Get(ctx, types.NamespacedName{Name: name}, &cluster, uncopied); err != nil {
		return lease.ClusterGrace(0)
	}
	return lease.ClusterGrace(cluster.Spec.LeaseDurationSeconds)
}

// trustedRequests passes certificate requests that may auto-accept a cluster, and those that are approved: an approval
// keeps a cluster that waits for acceptance.
func (r *Reconciler) trustedRequests() predicate.Predicate {
	created := reconcile.CreatedOrDeleted()
	accepts := predicate.And[client.Object](created, predicate.NewPredicateFuncs(func(o client.Object) bool {
		request, ok := o.(*certificatesv1.CertificateSigningRequest)
		return ok && request.DeletionTimestamp.IsZero() && r.Trust.Names(request)
	}))
	return predicate.Or[client.Object](accepts, predicate.Funcs{
		CreateFunc:  func(e event.CreateEvent) bool { return r.keepsCluster(nil, e.Object) },
		UpdateFunc:  func(e event.UpdateEvent) bool { return r.keepsCluster(e.ObjectOld, e.ObjectNew) },
		DeleteFunc:  func(event.DeleteEvent) bool { return false },
		GenericFunc: func(event.GenericEvent) bool { return false },
	})
}

// keepsCluster reports whether a certificate request was approved just now.
func (r *Reconciler) keepsCluster(before, after client.Object) bool {
	was, old := before.(*certificatesv1.CertificateSigningRequest)
	is, ok := after.(*certificatesv1.CertificateSigningRequest)
	return r.UnacceptedLife > 0 && ok && isApproved(is) && (!old || !isApproved(was))
}

// onlyRenewed reports whether a Lease changed only by a renewal.
func onlyRenewed(older, newer *coordinationv1.Lease) bool {
	if older.Spec.RenewTime.IsZero() || newer.Spec.RenewTime.IsZero() || !newer.DeletionTimestamp.IsZero() {
		return false
	}
	return !newer.Spec.RenewTime.Before(older.Spec.RenewTime) &&
		older.Labels[names.LabelClusterName] == newer.Labels[names.LabelClusterName]
}

// addonChanges passes add-ons that are created or deleted, get their first condition or change their health, and those
// of which another client replaced that their agent is silent by another reason of Unknown.
func addonChanges() predicate.Predicate {
	deleting := reconcile.DeletionStarted()
	return predicate.Or[client.Object](deleting, predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		return health(e.ObjectOld) != health(e.ObjectNew) || silenceReplaced(e) || firstCondition(e)
	}})
}

// firstCondition reports whether an add-on got its first condition, from which on its label waits for a report.
func firstCondition(e event.UpdateEvent) bool {
	return len(addonapi.Conditions(e.ObjectOld)) == 0 && len(addonapi.Conditions(e.ObjectNew)) > 0
}

// silenceReplaced reports whether an add-on said that its agent is silent, and says something else.
func silenceReplaced(e event.UpdateEvent) bool {
	return isSilent(e.ObjectOld) && !isSilent(e.ObjectNew)
}

// isSilent reports whether an add-on says that its agent is silent.
func isSilent(o client.Object) bool {
	c := meta.FindStatusCondition(addonapi.Conditions(o), addonv1beta1.ManagedClusterAddOnConditionAvailable)
	return c != nil && c.Status == metav1.ConditionUnknown && c.Reason == reasonSilent
}

// health returns the status of the condition Available of an add-on. It is called for every change of every add-on, so
// it converts none.
func health(o client.Object) metav1.ConditionStatus {
	c := meta.FindStatusCondition(addonapi.Conditions(o), addonv1beta1.ManagedClusterAddOnConditionAvailable)
	if c == nil {
		return ""
	}
	return c.Status
}

// indexRequests finds the certificate requests that carry the label of a cluster.
const indexRequests = "cluster.requests"

// Index adds the field index of certificate requests to a cache; it must be called once, before the cache starts.
func Index(ctx context.Context, indexer client.FieldIndexer) error {
	return reconcile.AddIndexes(ctx, indexer, reconcile.FieldIndex{
		Object: &certificatesv1.CertificateSigningRequest{}, Field: indexRequests,
		Keys: func(o client.Object) []string {
			cluster := o.GetLabels()[names.LabelClusterName]
			if cluster == "" {
				return nil
			}
			return []string{cluster}
		},
	})
}

// watchQuiet adds the watches that count what the agents of clusters do.
func (r *Reconciler) watchQuiet(b *builder.Builder, foreign *metav1.PartialObjectMetadata) *builder.Builder {
	works := r.counted("ManifestWork", func(o client.Object) []metav1.Condition {
		if work, ok := o.(*workv1.ManifestWork); ok {
			return work.Status.Conditions
		}
		return nil // Of the works of others, only the metadata is cached.
	})
	return b.
		Watches(&clusterv1.ManagedCluster{}, r.counted("ManagedCluster", func(o client.Object) []metav1.Condition {
			if cluster, ok := o.(*clusterv1.ManagedCluster); ok {
				return cluster.Status.Conditions
			}
			return nil
		})).
		Watches(r.AddOns.WatchedAddOn(), r.counted("ManagedClusterAddOn", addonapi.Conditions),
			builder.WithPredicates(predicate.NewPredicateFuncs(isNotHosted))).
		Watches(&coordinationv1.Lease{}, r.counted("Lease", func(client.Object) []metav1.Condition { return nil })).
		Watches(&workv1.ManifestWork{}, works).
		WatchesRawSource(source.Kind[client.Object](r.ForeignWorks, foreign, works)).
		Watches(&certificatesv1.CertificateSigningRequest{}, r.countedRequests())
}

// isNotHosted reports whether an add-on runs on its own cluster. Of a hosted one, the hub manager writes what the agent
// of the hosting cluster says, which is no matter of this cluster.
func isNotHosted(addOn client.Object) bool {
	return addOn.GetAnnotations()[addonv1beta1.HostingClusterNameAnnotationKey] == ""
}

// counted counts the updates of objects of a kind that leave the spec as it is. Those of the hub manager are among
// them, because it answers what agents write, and far below the limits otherwise. It enqueues the cluster if that makes
// a finding.
func (r *Reconciler) counted(kind string, conditions func(client.Object) []metav1.Condition) handler.EventHandler {
	forget := func(_ context.Context, e event.DeleteEvent, _ queue) {
		if e.Object.GetNamespace() == "" {
			r.Meter.Forget(e.Object.GetName())
		}
	}
	return handler.Funcs{DeleteFunc: forget, UpdateFunc: func(_ context.Context, e event.UpdateEvent, q queue) {
		older, newer := e.ObjectOld, e.ObjectNew
		if older.GetResourceVersion() == newer.GetResourceVersion() || older.GetGeneration() != newer.GetGeneration() {
			return
		}
		cluster := newer.GetNamespace()
		if cluster == "" {
			cluster = newer.GetName()
		}
		thing := meter.Thing{Kind: kind, Name: newer.GetName()}
		r.note(q, cluster, meter.Writes, thing)
		if flipped(conditions(older), conditions(newer)) {
			r.note(q, cluster, meter.Flips, thing)
		}
	}}
}

// flipped reports whether a condition has another status, or is gone, which comes to the same where it comes back.
func flipped(older, newer []metav1.Condition) bool {
	for i := range older {
		has := meta.FindStatusCondition(newer, older[i].Type)
		if has == nil || has.Status != older[i].Status {
			return true
		}
	}
	return false
}

// countedRequests counts certificate requests. When those were made that are listed at the start is not known in the
// time of the meter.
func (r *Reconciler) countedRequests() handler.EventHandler {
	return handler.Funcs{CreateFunc: func(_ context.Context, e event.CreateEvent, q queue) {
		request, ok := e.Object.(*certificatesv1.CertificateSigningRequest)
		if !ok || e.IsInInitialList {
			return
		}
		if cluster, thing := requester(request); cluster != "" {
			r.note(q, cluster, meter.Requests, thing)
		}
	}}
}

// requester returns for which cluster a request was made, and for which of its agents. An agent may write any label,
// but cannot choose its user name. One that joins has none of its own: then it is the user who counts, as anyone who
// may join can name any cluster.
func requester(request *certificatesv1.CertificateSigningRequest) (string, meter.Thing) {
	agent, ok := csrs.ParseClusterUser(request.Spec.Username)
	switch addOn := request.Labels[names.LabelAddonName]; {
	case !ok:
		return request.Labels[names.LabelClusterName], meter.Thing{Kind: kindUser, Name: request.Spec.Username}
	case addOn != "":
		return agent.Cluster, meter.Thing{Kind: "add-on", Name: addOn}
	}
	return agent.Cluster, meter.Thing{Kind: "the agent"}
}

// note counts one more, and enqueues the cluster if that makes a finding.
func (r *Reconciler) note(q queue, cluster string, rule meter.Rule, thing meter.Thing) {
	if r.Meter.Note(cluster, rule, thing) {
		for _, request := range reconcile.Request("", cluster) {
			q.Add(request)
		}
	}
}
