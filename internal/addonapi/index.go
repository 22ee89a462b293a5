package addonapi

import (
	"context"
	"fmt"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/types"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/spokelet/spokelet/internal/decode"
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
	// IndexBinding finds the RoleBindings of one add-on on one cluster in the namespaces of others, by
	// "<cluster>/<add-on>". See ListBindings for the rest.
	IndexBinding = "addon.binding"
	// IndexSharedBinding finds the RoleBindings of an add-on for all clusters by its name.
	IndexSharedBinding = "addon.shared-binding"
)

// Index adds the shared field indexes to a cache; it must be called once, before the cache starts.
func (c Client) Index(ctx context.Context, indexer client.FieldIndexer) error {
	if err := c.IndexAddOns(ctx, indexer); err != nil {
		return err
	}
	return reconcile.AddIndexes(ctx, indexer,
		reconcile.FieldIndex{Object: &clusterv1beta1.PlacementDecision{}, Field: IndexCluster, Keys: SelectedClusters},
	)
}

// IndexAddOns is Index without the indexes of placement, for a cache without PlacementDecisions.
func (c Client) IndexAddOns(ctx context.Context, indexer client.FieldIndexer) error {
	return reconcile.AddIndexes(ctx, indexer,
		reconcile.FieldIndex{
			Object: c.WatchedAddOn(), Field: IndexName, Everywhere: true,
			Keys: func(o client.Object) []string { return []string{o.GetName()} },
		},
		reconcile.FieldIndex{Object: c.WatchedClusterManagementAddOn(), Field: IndexPlacement, Keys: placementKeys},
		reconcile.FieldIndex{Object: &rbacv1.RoleBinding{}, Field: IndexBinding, Keys: BindingKeys, Everywhere: true},
		reconcile.FieldIndex{
			Object: &rbacv1.RoleBinding{}, Field: IndexSharedBinding, Keys: SharedBindingKeys, Everywhere: true,
		},
	)
}

// BindingKeys returns the add-on on a cluster that a RoleBinding in another namespace belongs to, by its labels. It
// returns nil for any other RoleBinding. Those in the namespaces of clusters are one for each add-on on each cluster,
// and easily found without an index.
func BindingKeys(o client.Object) []string {
	labels := o.GetLabels()
	addOn, cluster := labels[names.LabelAddonName], labels[names.LabelClusterName]
	if addOn == "" || cluster == "" || cluster == o.GetNamespace() {
		return nil
	}
	return []string{types.NamespacedName{Namespace: cluster, Name: addOn}.String()}
}

// ListBindings lists the RoleBindings of one add-on on one cluster: those in the namespace of the cluster that do not
// name another one, and those in other namespaces that name the cluster. They must not be changed.
func ListBindings(ctx context.Context, from client.Reader, key types.NamespacedName) ([]*rbacv1.RoleBinding, error) {
	var here, elsewhere rbacv1.RoleBindingList
	err := from.List(ctx, &here, client.UnsafeDisableDeepCopy, client.InNamespace(key.Namespace),
		client.MatchingLabels{names.LabelAddonName: key.Name})
	if err == nil {
		err = from.List(ctx, &elsewhere, client.UnsafeDisableDeepCopy, client.MatchingFields{IndexBinding: key.String()})
	}
	if err != nil {
		return nil, fmt.Errorf("listing the RoleBindings of add-on %s: %w", key, err)
	}
	all := slices.DeleteFunc(reconcile.Pointers(here.Items), func(binding *rbacv1.RoleBinding) bool {
		cluster := binding.Labels[names.LabelClusterName]
		return cluster != "" && cluster != key.Namespace
	})
	return append(all, reconcile.Pointers(elsewhere.Items)...), nil
}

// SharedBindingKeys returns the add-on of a RoleBinding for all clusters, which names no cluster and belongs to no
// ManagedClusterAddOn; nil for any other RoleBinding.
func SharedBindingKeys(o client.Object) []string {
	labels := o.GetLabels()
	addOn := labels[names.LabelAddonName]
	if addOn == "" || labels[names.LabelClusterName] != "" {
		return nil
	}
	for _, owner := range o.GetOwnerReferences() {
		if owner.Kind == "ManagedClusterAddOn" {
			return nil
		}
	}
	return []string{addOn}
}

// PlacementKey returns the value under which IndexPlacement files a placement.
func PlacementKey(namespace, name string) string {
	return types.NamespacedName{Namespace: namespace, Name: name}.String()
}

func placementKeys(o client.Object) []string {
	placements := StrategyOf(o).Placements
	keys := make([]string, len(placements))
	for i, placement := range placements {
		keys[i] = placement.String()
	}
	return keys
}

// InstalledByPlacements reports whether placements install an add-on, rather than people.
func InstalledByPlacements(cma *addonv1beta1.ClusterManagementAddOn) bool {
	return cma.Spec.InstallStrategy.Type == addonv1beta1.AddonInstallStrategyPlacements
}

// SelectedClusters returns the names of the clusters that a PlacementDecision selects; nil for any other object. One
// that is being deleted selects them until it is gone or empty: OCM goes on writing one that a finalizer keeps, and our
// placement empties it when it has decided without it.
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
	// One that cannot be decoded has an event of its own when it can be.
	objects, err := c.ListWatched(ctx, append(slices.Clone(opts), decode.LeaveOut)...)
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

// ManagementsBy returns requests for the ClusterManagementAddOns under a key of a field index. An error is logged, as
// in Requests.
func (c Client) ManagementsBy(ctx context.Context, index, key string) []ctrl.Request {
	var requests []ctrl.Request
	err := c.EachClusterManagementAddOn(ctx, func(o client.Object) {
		requests = append(requests, ctrl.Request{NamespacedName: types.NamespacedName{Name: o.GetName()}})
	}, client.MatchingFields{index: key}, decode.Metadata)
	if err != nil {
		log.FromContext(ctx).Error(err, "finding the ClusterManagementAddOns that a change concerns", "index", index,
			"key", key)
		return nil
	}
	return requests
}

// ManagementRequests returns requests for the ClusterManagementAddOns under a key of a field index, and for those with
// an add-on on some cluster under it. An error is logged, as in Requests.
func (c Client) ManagementRequests(ctx context.Context, index, key string) []ctrl.Request {
	requests := c.ManagementsBy(ctx, index, key)
	for _, addOn := range c.Requests(ctx, nil, client.MatchingFields{index: key}) {
		of := ctrl.Request{NamespacedName: types.NamespacedName{Name: addOn.Name}}
		if !slices.Contains(requests, of) {
			requests = append(requests, of)
		}
	}
	return requests
}

// PlacementOf returns the placement of a PlacementDecision.
func PlacementOf(decision *clusterv1beta1.PlacementDecision) addonv1beta1.PlacementRef {
	return addonv1beta1.PlacementRef{Namespace: decision.Namespace, Name: decision.Labels[names.LabelPlacement]}
}
