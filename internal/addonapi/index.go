package addonapi

import (
	"context"

	"k8s.io/apimachinery/pkg/types"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/internal/reconcile"
)

// Field indexes that several reconcilers use. Index adds them to a cache.
const (
	// IndexName finds ManagedClusterAddOns by their name, on all clusters.
	IndexName = "addon.name"
	// IndexPlacement finds ClusterManagementAddOns by the placements of their install strategy, see PlacementKey.
	IndexPlacement = "addon.placement"
	// IndexCluster finds PlacementDecisions by the clusters that they select.
	IndexCluster = "addon.cluster"
)

// Index adds the shared field indexes to a cache; it must be called once, before the cache starts.
func (c Client) Index(ctx context.Context, indexer client.FieldIndexer) error {
	return reconcile.AddIndexes(ctx, indexer,
		reconcile.FieldIndex{
			Object: c.WatchedAddOn(), Field: IndexName,
			Keys: func(o client.Object) []string { return []string{o.GetName()} },
		},
		reconcile.FieldIndex{Object: c.WatchedClusterManagementAddOn(), Field: IndexPlacement, Keys: placementKeys},
		reconcile.FieldIndex{Object: &clusterv1beta1.PlacementDecision{}, Field: IndexCluster, Keys: SelectedClusters},
	)
}

// PlacementKey returns the value under which IndexPlacement files a placement.
func PlacementKey(namespace, name string) string {
	return types.NamespacedName{Namespace: namespace, Name: name}.String()
}

func placementKeys(o client.Object) []string {
	cma, err := ClusterManagementAddOn(o)
	if err != nil || !InstalledByPlacements(cma) {
		return nil
	}
	keys := make([]string, 0, len(cma.Spec.InstallStrategy.Placements))
	for _, ref := range cma.Spec.InstallStrategy.Placements {
		keys = append(keys, PlacementKey(ref.Namespace, ref.Name))
	}
	return keys
}

// InstalledByPlacements reports whether placements install an add-on, rather than people.
func InstalledByPlacements(cma *addonv1beta1.ClusterManagementAddOn) bool {
	return cma.Spec.InstallStrategy.Type == addonv1beta1.AddonInstallStrategyPlacements
}

// SelectedClusters returns the names of the clusters in a PlacementDecision; nil for any other object.
func SelectedClusters(o client.Object) []string {
	decision, ok := o.(*clusterv1beta1.PlacementDecision)
	if !ok {
		return nil
	}
	clusters := make([]string, len(decision.Status.Decisions))
	for i, d := range decision.Status.Decisions {
		clusters[i] = d.ClusterName
	}
	return clusters
}

// Requests lists add-ons and returns a request for each that wanted accepts; a nil wanted accepts all. Map functions
// cannot fail, so an error is logged; a synced cache returns none.
func (c Client) Requests(
	ctx context.Context, wanted func(*addonv1beta1.ManagedClusterAddOn) bool, opts ...client.ListOption,
) []ctrl.Request {
	objects, err := c.ListWatched(ctx, opts...)
	if err != nil {
		log.FromContext(ctx).Error(err, "finding the add-ons that a change concerns")
		return nil
	}
	requests := make([]ctrl.Request, 0, len(objects))
	for _, object := range objects {
		if wanted != nil {
			if addon, err := AddOn(object); err != nil || !wanted(addon) {
				continue
			}
		}
		requests = append(requests, ctrl.Request{NamespacedName: client.ObjectKeyFromObject(object)})
	}
	return requests
}

// PlacementOf returns the placement of a PlacementDecision.
func PlacementOf(decision *clusterv1beta1.PlacementDecision) addonv1beta1.PlacementRef {
	return addonv1beta1.PlacementRef{Namespace: decision.Namespace, Name: decision.Labels[names.LabelPlacement]}
}
