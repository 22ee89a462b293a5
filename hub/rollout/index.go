package rollout

import (
	"context"
	"fmt"

	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/internal/addonapi"
	"github.com/spokelet/spokelet/internal/confighash"
)

// Indexes of the cache. They are ours alone, so their names are too.
const (
	// indexName finds add-ons of all clusters by their name.
	indexName = "spokelet.io/rollout-name"
	// indexConfig finds add-ons and ClusterManagementAddOns by the configs that their spec asks for.
	indexConfig = "spokelet.io/rollout-config"
	// indexPlacement finds ClusterManagementAddOns by the placements that they list.
	indexPlacement = "spokelet.io/rollout-placement"
	// indexCluster finds PlacementDecisions by the clusters that they select.
	indexCluster = "spokelet.io/rollout-cluster"
)

// Index prepares the cache of the hub; it must be called once before the cache starts.
func (r *Reconciler) Index(ctx context.Context, indexer client.FieldIndexer) error {
	indexes := []struct {
		object client.Object
		field  string
		keys   client.IndexerFunc
	}{
		{r.AddOns.WatchedAddOn(), indexName, func(o client.Object) []string { return []string{o.GetName()} }},
		{r.AddOns.WatchedAddOn(), indexConfig, addOnConfigKeys},
		{r.AddOns.WatchedManagement(), indexConfig, managementConfigKeys},
		{r.AddOns.WatchedManagement(), indexPlacement, placementKeys},
		{&clusterv1beta1.PlacementDecision{}, indexCluster, clusterKeys},
	}
	for _, index := range indexes {
		if err := indexer.IndexField(ctx, index.object, index.field, index.keys); err != nil {
			return fmt.Errorf("indexing %T by %s: %w", index.object, index.field, err)
		}
	}
	return nil
}

func addOnConfigKeys(o client.Object) []string {
	addon, err := addonapi.AddOn(o)
	if err != nil {
		return nil
	}
	return configKeys(addon.Spec.Configs)
}

func managementConfigKeys(o client.Object) []string {
	management, err := addonapi.Management(o)
	if err != nil {
		return nil
	}
	keys := configKeys(management.Spec.DefaultConfigs)
	for _, placement := range management.Spec.InstallStrategy.Placements {
		keys = append(keys, configKeys(placement.Configs)...)
	}
	return keys
}

func configKeys(configs []addonv1beta1.AddOnConfig) []string {
	keys := make([]string, 0, len(configs))
	for _, config := range configs {
		keys = append(keys, confighash.Key(config.ConfigGroupResource, config.ConfigReferent))
	}
	return keys
}

func placementKeys(o client.Object) []string {
	management, err := addonapi.Management(o)
	if err != nil {
		return nil
	}
	var keys []string
	for _, placement := range management.Spec.InstallStrategy.Placements {
		keys = append(keys, placementKey(placement.PlacementRef))
	}
	return keys
}

func placementKey(ref addonv1beta1.PlacementRef) string { return ref.Namespace + "/" + ref.Name }

func clusterKeys(o client.Object) []string {
	decision, ok := o.(*clusterv1beta1.PlacementDecision)
	if !ok {
		return nil
	}
	keys := make([]string, 0, len(decision.Status.Decisions))
	for _, selected := range decision.Status.Decisions {
		keys = append(keys, selected.ClusterName)
	}
	return keys
}
