package rollout

import (
	"iter"
	"slices"

	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"

	"github.com/spokelet/spokelet/internal/addonapi"
	"github.com/spokelet/spokelet/internal/addonconfig"
	"github.com/spokelet/spokelet/internal/reconcile"
)

// conclude returns the ClusterManagementAddOn with its new status. The history of configs that are still desired is
// kept.
func conclude(f facts, p plan) *addonv1beta1.ClusterManagementAddOn {
	after := f.cma.DeepCopy()
	after.Status.DefaultConfigReferences = f.defaultReferences()
	switch {
	case !addonapi.InstalledByPlacements(f.cma):
		after.Status.InstallProgressions = nil
		return after
	case !addonapi.Managed(f.cma):
		return after
	}
	after.Status.InstallProgressions = nil
	for index, strategy := range f.cma.Spec.InstallStrategy.Placements {
		result := p.placements[index]
		progression := f.progression(strategy)
		remarks := append(f.remarks(index, p.stuck[index]), p.undoings[index].remark())
		reconcile.SetCondition(&progression.Conditions, result.Condition(remarks...), f.now)
		if result.Counts.Complete() && !p.undoings[index].returns() {
			recordApplied(progression.ConfigReferences)
		}
		after.Status.InstallProgressions = append(after.Status.InstallProgressions, progression)
	}
	return after
}

// remarks explains to the author of a placement entry what keeps its add-ons from their configuration.
func (f facts) remarks(index int, stuck stuckAddOns) []string {
	strategy := f.cma.Spec.InstallStrategy.Placements[index]
	var remarks []string
	if remark := selectionRemark(f.placements[index], strategy.PlacementRef); remark != "" {
		remarks = append(remarks, remark)
	}
	for _, desired := range addonconfig.DesiredConfigs(f.cma, index, nil) {
		switch state := f.states[desired.AddOnConfig]; {
		case state.Missing:
			remarks = append(remarks, addonconfig.Describe(desired.AddOnConfig)+" does not exist")
		case state.Refused != "":
			remarks = append(remarks, addonconfig.Describe(desired.AddOnConfig)+" cannot be used: "+state.Refused)
		}
	}
	if count := stuck.remark(); count != "" {
		remarks = append(remarks, count)
	}
	return remarks
}

// defaultReferences lists the defaults, in the order of the spec.
func (f facts) defaultReferences() []addonv1beta1.DefaultConfigReference {
	old := addonconfig.DefaultReferences(f.cma.Status.DefaultConfigReferences)
	var references []addonv1beta1.DefaultConfigReference
	for _, config := range f.cma.Spec.DefaultConfigs {
		if !addonapi.HasDefault(config) {
			continue
		}
		references = append(references, addonv1beta1.DefaultConfigReference{
			ConfigGroupResource: config.ConfigGroupResource, DesiredConfig: f.desired(config, old),
		})
	}
	return references
}

// progression returns the status entry of one placement with the conditions of the former entry and the history of each
// config. A config that is new to the placement has no history.
func (f facts) progression(strategy addonv1beta1.PlacementStrategy) addonv1beta1.InstallProgression {
	progression := addonv1beta1.InstallProgression{PlacementRef: strategy.PlacementRef}
	var old addonv1beta1.InstallProgression
	for _, candidate := range f.cma.Status.InstallProgressions {
		if candidate.PlacementRef == strategy.PlacementRef {
			old = *candidate.DeepCopy()
		}
	}
	progression.Conditions = old.Conditions
	known := addonconfig.PlacementReferences(old.ConfigReferences)
	for _, config := range placementConfigs(strategy) {
		reference := addonv1beta1.InstallConfigReference{
			ConfigGroupResource: config.ConfigGroupResource, DesiredConfig: f.desired(config, known),
		}
		for i := range known {
			if known[i].Is(config) {
				reference.LastAppliedConfig = old.ConfigReferences[i].LastAppliedConfig
				reference.LastKnownGoodConfig = old.ConfigReferences[i].LastKnownGoodConfig
			}
		}
		progression.ConfigReferences = append(progression.ConfigReferences, reference)
	}
	return progression
}

// desired returns a config with its hash. If the hub manager does not read the kind, or the config is gone, the hash in
// the status stays.
func (f facts) desired(config addonv1beta1.AddOnConfig, old []addonconfig.Reference) *addonv1beta1.ConfigSpecHash {
	hash := f.states[config].Hash
	if hash == "" {
		hash = addonconfig.HashOf(config, old)
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

// placementConfigs returns the configs of a placement in the order of its progression: by group and resource, then as
// listed.
func placementConfigs(strategy addonv1beta1.PlacementStrategy) []addonv1beta1.AddOnConfig {
	configs := slices.Clone(strategy.Configs)
	slices.SortStableFunc(configs, func(a, b addonv1beta1.AddOnConfig) int {
		return addonconfig.CompareResources(a.ConfigGroupResource, b.ConfigGroupResource)
	})
	return configs
}

// contents returns the contents that a reference names.
func contents(
	kind addonv1beta1.ConfigGroupResource, named ...*addonv1beta1.ConfigSpecHash,
) (all []addonconfig.Chosen) {
	for _, content := range named {
		if content != nil && content.SpecHash != "" {
			all = append(all, addonconfig.Chosen{ConfigGroupResource: kind, ConfigSpecHash: *content})
		}
	}
	return all
}

// referredBy returns the contents that a ClusterManagementAddOn names: those that its clusters are to have, and those
// that were good. Nil names none.
func referredBy(cma *addonv1beta1.ClusterManagementAddOn) (all []addonconfig.Chosen) {
	if cma == nil {
		return nil
	}
	for _, r := range cma.Status.DefaultConfigReferences {
		all = append(all, contents(r.ConfigGroupResource, r.DesiredConfig)...)
	}
	for _, progression := range cma.Status.InstallProgressions {
		for _, r := range progression.ConfigReferences {
			all = append(all, contents(r.ConfigGroupResource, r.DesiredConfig, r.LastAppliedConfig, r.LastKnownGoodConfig)...)
		}
	}
	return all
}

// referredByMembers returns the contents that add-ons on clusters have or are to have, of one after the other.
func referredByMembers(members map[string]*member) iter.Seq[addonconfig.Chosen] {
	return func(yield func(addonconfig.Chosen) bool) {
		for _, m := range members {
			for _, r := range m.references {
				for _, content := range contents(r.ConfigGroupResource, r.DesiredConfig, r.LastAppliedConfig) {
					if !yield(content) {
						return
					}
				}
			}
		}
	}
}
