package cluster

import (
	"context"

	certificatesv1 "k8s.io/api/certificates/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/source"

	csrs "github.com/spokelet/spokelet/csr"
	"github.com/spokelet/spokelet/hub/cluster/meter"
	"github.com/spokelet/spokelet/internal/addonapi"
	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/internal/reconcile"
)

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
