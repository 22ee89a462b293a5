package addonconfig

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/internal/addonapi"
	"github.com/spokelet/spokelet/internal/confighash"
	"github.com/spokelet/spokelet/internal/reconcile"
)

// Watched returns an empty object of every kind of configuration that the hub manager reads, for watches.
func (s *Store) Watched() []client.Object {
	var kinds []client.Object
	for _, resource := range confighash.Resources() {
		if s.Kinds != nil && !slices.Contains(s.Kinds, resource) {
			continue
		}
		if kind, known := s.Versions.New(resource); known {
			kinds = append(kinds, kind)
		}
	}
	return kinds
}

// ConfigKeyOf returns the index key of the config of an event.
func ConfigKeyOf(o client.Object) string {
	object, ok := o.(*unstructured.Unstructured)
	if !ok {
		return ""
	}
	referent := addonv1beta1.ConfigReferent{Namespace: object.GetNamespace(), Name: object.GetName()}
	for _, resource := range confighash.Resources() {
		if kind, known := confighash.Kind(resource); known && kind.GroupKind() == object.GroupVersionKind().GroupKind() {
			return confighash.Key(resource, referent)
		}
	}
	return ""
}

// IndexConfig finds add-ons and ClusterManagementAddOns by the configs that their spec names.
const IndexConfig = "configure.config"

// Index adds the field indexes of this package to a cache; it must be called once, before the cache starts. The indexes
// of addonapi.Client are needed, too.
func Index(ctx context.Context, addOns addonapi.Client, indexer client.FieldIndexer) error {
	return reconcile.AddIndexes(ctx, indexer,
		reconcile.FieldIndex{Object: addOns.WatchedAddOn(), Field: IndexConfig, Keys: addOnConfigKeys, Everywhere: true},
		reconcile.FieldIndex{Object: addOns.WatchedClusterManagementAddOn(), Field: IndexConfig, Keys: cmaConfigKeys},
	)
}

func addOnConfigKeys(o client.Object) []string {
	addon, err := addonapi.AddOn(o)
	if err != nil {
		return nil
	}
	return configKeys(addon.Spec.Configs)
}

func cmaConfigKeys(o client.Object) []string {
	cma, err := addonapi.ClusterManagementAddOn(o)
	if err != nil {
		return nil
	}
	keys := configKeys(cma.Spec.DefaultConfigs)
	for _, placement := range cma.Spec.InstallStrategy.Placements {
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
