package rollout

import (
	"encoding/json"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1alpha1 "open-cluster-management.io/api/cluster/v1alpha1"
	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/spokelet/spokelet/internal/confighash"
	"github.com/spokelet/spokelet/internal/names"
)

// noon is the instant of all tests.
var noon = time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)

func template(name string) addonv1beta1.AddOnConfig {
	return addonv1beta1.AddOnConfig{
		ConfigGroupResource: confighash.Template(), ConfigReferent: addonv1beta1.ConfigReferent{Name: name},
	}
}

func deployment(name string) addonv1beta1.AddOnConfig {
	return addonv1beta1.AddOnConfig{
		ConfigGroupResource: confighash.DeploymentConfig(),
		ConfigReferent:      addonv1beta1.ConfigReferent{Namespace: "ns", Name: name},
	}
}

func configMap(name string) addonv1beta1.AddOnConfig {
	return addonv1beta1.AddOnConfig{
		ConfigGroupResource: addonv1beta1.ConfigGroupResource{Resource: "configmaps"},
		ConfigReferent:      addonv1beta1.ConfigReferent{Namespace: "ns", Name: name},
	}
}

func hashed(config addonv1beta1.AddOnConfig, hash string) *addonv1beta1.ConfigSpecHash {
	return &addonv1beta1.ConfigSpecHash{ConfigReferent: config.ConfigReferent, SpecHash: hash}
}

// desires is a reference to a config with a hash that was never applied.
func desires(config addonv1beta1.AddOnConfig, hash string) addonv1beta1.ConfigReference {
	return addonv1beta1.ConfigReference{
		ConfigGroupResource: config.ConfigGroupResource, DesiredConfig: hashed(config, hash),
	}
}

// has is a reference to a config that is applied.
func has(config addonv1beta1.AddOnConfig, hash string) addonv1beta1.ConfigReference {
	reference := desires(config, hash)
	reference.LastAppliedConfig = hashed(config, hash)
	return reference
}

func observed(reference addonv1beta1.ConfigReference, generation int64) addonv1beta1.ConfigReference {
	reference.LastObservedGeneration = generation
	return reference
}

func placement(name string, configs ...addonv1beta1.AddOnConfig) addonv1beta1.PlacementStrategy {
	return addonv1beta1.PlacementStrategy{
		PlacementRef: addonv1beta1.PlacementRef{Namespace: "ns", Name: name}, Configs: configs,
	}
}

func byStrategy(
	strategy clusterv1alpha1.RolloutStrategy, p addonv1beta1.PlacementStrategy,
) addonv1beta1.PlacementStrategy {
	p.RolloutStrategy = strategy
	return p
}

func newCMA(
	defaults []addonv1beta1.AddOnConfig, placements ...addonv1beta1.PlacementStrategy,
) *addonv1beta1.ClusterManagementAddOn {
	cma := &addonv1beta1.ClusterManagementAddOn{ObjectMeta: metav1.ObjectMeta{Name: "hello"}}
	cma.Spec.DefaultConfigs = defaults
	cma.Spec.InstallStrategy.Type = addonv1beta1.AddonInstallStrategyManual
	if len(placements) > 0 {
		cma.Spec.InstallStrategy.Type = addonv1beta1.AddonInstallStrategyPlacements
		cma.Spec.InstallStrategy.Placements = placements
	}
	return cma
}

func addOn(cluster string, references ...addonv1beta1.ConfigReference) *addonv1beta1.ManagedClusterAddOn {
	return &addonv1beta1.ManagedClusterAddOn{
		ObjectMeta: metav1.ObjectMeta{Name: "hello", Namespace: cluster},
		Status:     addonv1beta1.ManagedClusterAddOnStatus{ConfigReferences: references},
	}
}

func with(addon *addonv1beta1.ManagedClusterAddOn, conditions ...metav1.Condition) *addonv1beta1.ManagedClusterAddOn {
	addon.Status.Conditions = append(addon.Status.Conditions, conditions...)
	return addon
}

func condition(kind string, status metav1.ConditionStatus, reason string, since time.Time) metav1.Condition {
	return metav1.Condition{Type: kind, Status: status, Reason: reason, LastTransitionTime: metav1.NewTime(since)}
}

func isTrue(kind string) metav1.Condition {
	return condition(kind, metav1.ConditionTrue, "Because", noon)
}

// work is a work of the add-on hello whose annotation carries the hashes of references; nil for no annotation.
func work(name string, readyForGeneration int64, references []addonv1beta1.ConfigReference) *workv1.ManifestWork {
	w := &workv1.ManifestWork{ObjectMeta: metav1.ObjectMeta{Name: name, Generation: 3}}
	if references != nil {
		raw, err := json.Marshal(confighash.Map(references))
		if err != nil {
			panic(err)
		}
		w.Annotations = map[string]string{names.AnnotationConfigSpecHash: string(raw)}
	}
	for _, kind := range []string{workv1.WorkApplied, workv1.WorkAvailable} {
		w.Status.Conditions = append(w.Status.Conditions, metav1.Condition{
			Type: kind, Status: metav1.ConditionTrue, ObservedGeneration: readyForGeneration,
		})
	}
	return w
}
