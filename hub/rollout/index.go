package rollout

import (
	"context"

	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/internal/addonapi"
	"github.com/spokelet/spokelet/internal/confighash"
	"github.com/spokelet/spokelet/internal/reconcile"
)

// indexConfig finds add-ons and ClusterManagementAddOns by the configs that their spec names.
const indexConfig = "rollout.config"

// Index adds the field indexes of this package to a cache; it must be called once, before the cache starts. The indexes
// of addonapi.Client are needed, too.
func (r *Reconciler) Index(ctx context.Context, indexer client.FieldIndexer) error {
	return reconcile.AddIndexes(ctx, indexer,
		reconcile.FieldIndex{Object: r.AddOns.WatchedAddOn(), Field: indexConfig, Keys: addOnConfigKeys},
		reconcile.FieldIndex{Object: r.AddOns.WatchedManagement(), Field: indexConfig, Keys: managementConfigKeys},
	)
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
