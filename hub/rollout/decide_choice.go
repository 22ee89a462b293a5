package rollout

import (
	"fmt"
	"slices"

	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"

	"github.com/spokelet/spokelet/hub/addon"
)

// intended returns the configs that an add-on is to use. For an unselected add-on, they are known only if all
// placements name the same ones.
func (f addOnFacts) intended() ([]wantedConfig, error) {
	if !f.unselected() {
		return wantedConfigs(f.cma, f.placement, f.addon.Spec.Configs), nil
	}
	var common []addonv1beta1.AddOnConfig
	for index := range placementsOf(f.cma) {
		configs := configsOf(wantedConfigs(f.cma, index, f.addon.Spec.Configs))
		if index > 0 && !slices.Equal(common, configs) {
			return nil, &addon.NotReadyError{Message: "no placement of ClusterManagementAddOn " + f.cma.Name +
				" selects the cluster, and its placements ask for different configurations"}
		}
		common = configs
	}
	return wantedConfigs(f.cma, 0, f.addon.Spec.Configs), nil
}

func configsOf(wanted []wantedConfig) []addonv1beta1.AddOnConfig {
	configs := make([]addonv1beta1.AddOnConfig, 0, len(wanted))
	for _, w := range wanted {
		configs = append(configs, w.AddOnConfig)
	}
	return configs
}

// choice returns the content that the add-on is to run with, and why new content must not be rendered.
func (f addOnFacts) choice(wanted []wantedConfig) addon.Choice {
	choice := addon.Choice{Configs: make([]addon.ChosenConfig, 0, len(wanted)), Blocked: f.missing(wanted)}
	for _, w := range wanted {
		choice.Configs = append(choice.Configs, addon.ChosenConfig{
			ConfigGroupResource: w.ConfigGroupResource,
			ConfigSpecHash:      addonv1beta1.ConfigSpecHash{ConfigReferent: w.ConfigReferent, SpecHash: f.hash(w)},
		})
	}
	if strategy := f.strategy(); choice.Blocked == "" && !supported(strategy) {
		choice.Blocked = fmt.Sprintf("rollout strategy %s is not supported yet", strategy)
	}
	if waiting := f.waiting(wanted); choice.Blocked == "" && len(waiting) > 0 {
		choice.Blocked = listed(waiting)
	}
	return choice
}
