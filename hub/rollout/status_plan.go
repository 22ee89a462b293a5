package rollout

import (
	"time"

	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"

	"github.com/spokelet/spokelet/internal/addonapi"
	"github.com/spokelet/spokelet/internal/reconcile"
)

// concludePlan returns the ClusterManagementAddOn with its new status, and the instant at which time alone may change
// it. The history of configs that are still wanted is kept.
func concludePlan(f planFacts) (*addonv1beta1.ClusterManagementAddOn, time.Time) {
	after := f.cma.DeepCopy()
	after.Status.DefaultConfigReferences = f.defaultReferences()
	switch {
	case !addonapi.InstalledByPlacements(f.cma):
		after.Status.InstallProgressions = nil
		return after, time.Time{}
	case !addonapi.Managed(f.cma):
		return after, time.Time{}
	}
	var recheck time.Time
	owners := f.owners()
	after.Status.InstallProgressions = nil
	for index, strategy := range f.cma.Spec.InstallStrategy.Placements {
		counted := f.count(index, owners)
		recheck = reconcile.Earliest(recheck, counted.recheck)
		progression := f.progression(strategy)
		reconcile.SetCondition(&progression.Conditions, counted.condition(f.remarks(index)), f.now)
		if counted.complete() {
			recordApplied(progression.ConfigReferences)
		}
		after.Status.InstallProgressions = append(after.Status.InstallProgressions, progression)
	}
	return after, recheck
}

// defaultReferences lists the defaults, in the order of the spec.
func (f planFacts) defaultReferences() []addonv1beta1.DefaultConfigReference {
	old := f.cma.Status.DefaultConfigReferences
	var references []addonv1beta1.DefaultConfigReference
	for _, config := range f.cma.Spec.DefaultConfigs {
		if !addonapi.HasDefault(config) {
			continue
		}
		references = append(references, addonv1beta1.DefaultConfigReference{
			ConfigGroupResource: config.ConfigGroupResource,
			DesiredConfig:       f.desired(config, defaultReferences(old)),
		})
	}
	return references
}

// progression returns the status entry of one placement with the conditions of the former entry and the history of each
// config. A config that is new to the placement has no history.
func (f planFacts) progression(strategy addonv1beta1.PlacementStrategy) addonv1beta1.InstallProgression {
	progression := addonv1beta1.InstallProgression{PlacementRef: strategy.PlacementRef}
	var old addonv1beta1.InstallProgression
	for _, candidate := range f.cma.Status.InstallProgressions {
		if candidate.PlacementRef == strategy.PlacementRef {
			old = *candidate.DeepCopy()
		}
	}
	progression.Conditions = old.Conditions
	for _, config := range placementConfigs(strategy) {
		reference := addonv1beta1.InstallConfigReference{
			ConfigGroupResource: config.ConfigGroupResource,
			DesiredConfig:       f.desired(config, placementReferences(old.ConfigReferences)),
		}
		for i, known := range placementReferences(old.ConfigReferences) {
			if known.is(config) {
				reference.LastAppliedConfig = old.ConfigReferences[i].LastAppliedConfig
				reference.LastKnownGoodConfig = old.ConfigReferences[i].LastKnownGoodConfig
			}
		}
		progression.ConfigReferences = append(progression.ConfigReferences, reference)
	}
	return progression
}

// desired returns a config with its hash. If the hub does not read the kind, or the config is gone, the hash in the
// status stays.
func (f planFacts) desired(config addonv1beta1.AddOnConfig, old []reference) *addonv1beta1.ConfigSpecHash {
	hash := f.found[config].hash
	if hash == "" {
		hash = hashOf(config, old)
	}
	return &addonv1beta1.ConfigSpecHash{ConfigReferent: config.ConfigReferent, SpecHash: hash}
}

// recordApplied records that all add-ons of a placement have the desired configuration.
func recordApplied(references []addonv1beta1.InstallConfigReference) {
	for i := range references {
		references[i].LastAppliedConfig = references[i].DesiredConfig.DeepCopy()
		references[i].LastKnownGoodConfig = references[i].DesiredConfig.DeepCopy()
	}
}
