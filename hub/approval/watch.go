package approval

import (
	"context"
	"fmt"

	certificatesv1 "k8s.io/api/certificates/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	csrs "github.com/spokelet/spokelet/csr"
	"github.com/spokelet/spokelet/csr/approve"
	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/internal/reconcile"
)

// controllerName is the name of the controller and the source of its Events.
const controllerName = "hub.approval"

// indexUnfinished finds the unfinished requests of a cluster, and of an add-on on a cluster.
const indexUnfinished = "spokelet.io/unfinished"

// Selector selects the requests with the label of a cluster; if add-ons are named, only those with the label of one of
// them.
func Selector(addOns ...string) labels.Selector {
	selector := labels.NewSelector()
	labelled, err := labels.NewRequirement(names.LabelClusterName, selection.Exists, nil)
	if err != nil {
		return labels.Nothing()
	}
	selector = selector.Add(*labelled)
	if len(addOns) == 0 {
		return selector
	}
	of, err := labels.NewRequirement(names.LabelAddonName, selection.In, addOns)
	if err != nil {
		return labels.Nothing()
	}
	return selector.Add(*of)
}

// Index adds the field index to a cache; it must be called once, before the cache starts.
func Index(ctx context.Context, indexer client.FieldIndexer) error {
	return reconcile.AddIndexes(ctx, indexer, reconcile.FieldIndex{
		Object: &certificatesv1.CertificateSigningRequest{}, Field: indexUnfinished, Keys: indexKeys,
	})
}

// SetupWithManager adds the controller to the manager of the hub.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	if err := r.counters.register(r.Metrics); err != nil {
		return fmt.Errorf("setting up %s: %w", controllerName, err)
	}
	err := ctrl.NewControllerManagedBy(mgr).Named(controllerName).WithOptions(reconcile.Options(r.Workers)).
		Watches(&certificatesv1.CertificateSigningRequest{}, r.ofRequests()).
		Watches(&clusterv1.ManagedCluster{}, r.ofKey(client.Object.GetName), builder.WithPredicates(acceptanceChanged())).
		Watches(r.AddOns.WatchedAddOn(), r.ofKey(func(o client.Object) string {
			return addonKey(o.GetNamespace(), o.GetName())
		})).
		Complete(r)
	if err != nil {
		return fmt.Errorf("setting up %s: %w", controllerName, err)
	}
	return nil
}

// waiting returns the unfinished requests under a key of the index, as the cache holds them.
func (r *Reconciler) waiting(ctx context.Context, key string) []*certificatesv1.CertificateSigningRequest {
	var list certificatesv1.CertificateSigningRequestList
	err := r.Client.List(ctx, &list, client.MatchingFields{indexUnfinished: key}, client.UnsafeDisableDeepCopy)
	if err != nil {
		log.FromContext(ctx).Error(err, "looking for the unfinished certificate requests", "of", key)
		return nil
	}
	return reconcile.Pointers(list.Items)
}

// indexKeys returns the keys of an unfinished request: its cluster and, if it has one, its add-on.
func indexKeys(o client.Object) []string {
	csr, ok := o.(*certificatesv1.CertificateSigningRequest)
	if !ok || !unfinished(csr) {
		return nil
	}
	cluster, addon, addonLabel := csrs.Subject(csr)
	if !addonLabel {
		return []string{cluster}
	}
	return []string{cluster, addonKey(cluster, addon)}
}

func addonKey(cluster, addon string) string { return cluster + "/" + addon }

// acceptanceChanged passes changes that may turn a refusal into an approval: a cluster that is created, changes its
// acceptance, or no longer counts as joined.
func acceptanceChanged() predicate.Predicate {
	return predicate.Funcs{
		DeleteFunc: func(event.DeleteEvent) bool { return false },
		UpdateFunc: func(e event.UpdateEvent) bool {
			before, beforeOK := e.ObjectOld.(*clusterv1.ManagedCluster)
			after, afterOK := e.ObjectNew.(*clusterv1.ManagedCluster)
			return beforeOK && afterOK && acceptance(before) != acceptance(after)
		},
	}
}

func acceptance(cluster *clusterv1.ManagedCluster) [3]bool {
	return [3]bool{
		cluster.Spec.HubAcceptsClient,
		meta.IsStatusConditionTrue(cluster.Status.Conditions, clusterv1.ManagedClusterConditionHubAccepted),
		approve.HasJoined(cluster),
	}
}
