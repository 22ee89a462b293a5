package rollout

import (
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/hub/addon"
	"github.com/spokelet/spokelet/internal/addonapi"
)

var _ addon.Chooser = (*Reconciler)(nil)

// Choose implements addon.Chooser. It decides as the controllers of this package do, from the same specs, but believes
// no status of the add-on: the agent of the cluster may write that.
func (r *Reconciler) Choose(ctx context.Context, addOn *addonv1beta1.ManagedClusterAddOn) (addon.Choice, error) {
	management, err := r.AddOns.GetManagement(ctx, addOn.Name)
	switch {
	case apierrors.IsNotFound(err):
		return addon.Choice{}, &addon.NotReadyError{Message: fmt.Sprintf(
			"there is no ClusterManagementAddOn %s, which says what the add-on is to run with", addOn.Name)}
	case err != nil:
		return addon.Choice{}, err
	}
	f := addOnFacts{addon: addOn, management: management, found: findings{}}
	if f.placement, f.lost, err = r.owner(ctx, management, addOn.Namespace); err != nil {
		return addon.Choice{}, err
	}
	wanted, err := f.intended()
	if err != nil {
		return addon.Choice{}, err
	}
	for _, w := range wanted {
		if err := r.find(ctx, w.AddOnConfig, f.found); err != nil {
			return addon.Choice{}, err
		}
	}
	return f.choice(wanted), nil
}

// Named implements addon.Chooser.
func (r *Reconciler) Named(ctx context.Context, addOn string) ([]addonv1beta1.AddOnConfig, error) {
	management, err := r.AddOns.GetManagement(ctx, addOn)
	if err != nil {
		return nil, err
	}
	addOns, err := r.AddOns.ListAddOns(ctx, client.MatchingFields{addonapi.IndexName: addOn})
	if err != nil {
		return nil, err
	}
	named := slices.DeleteFunc(slices.Clone(management.Spec.DefaultConfigs), func(c addonv1beta1.AddOnConfig) bool {
		return !addonapi.HasDefault(c)
	})
	for _, placement := range management.Spec.InstallStrategy.Placements {
		named = append(named, placement.Configs...)
	}
	for _, a := range addOns {
		named = append(named, a.Spec.Configs...)
	}
	return named, nil
}

// intended returns the configs that an add-on is to use. While no placement selects its cluster though it is installed
// by placements, that is known only if every placement asks for the same.
func (f addOnFacts) intended() ([]wantedConfig, error) {
	if !f.adrift() {
		return wantedConfigs(f.management, f.placement, f.addon.Spec.Configs), nil
	}
	var common []addonv1beta1.AddOnConfig
	for index := range placementsOf(f.management) {
		configs := configsOf(wantedConfigs(f.management, index, f.addon.Spec.Configs))
		if index > 0 && !slices.Equal(common, configs) {
			return nil, &addon.NotReadyError{Message: "no placement of ClusterManagementAddOn " + f.management.Name +
				" selects the cluster, and its placements ask for different configurations"}
		}
		common = configs
	}
	return wantedConfigs(f.management, 0, f.addon.Spec.Configs), nil
}

func configsOf(wanted []wantedConfig) []addonv1beta1.AddOnConfig {
	configs := make([]addonv1beta1.AddOnConfig, 0, len(wanted))
	for _, w := range wanted {
		configs = append(configs, w.AddOnConfig)
	}
	return configs
}

// choice says with which content the add-on is to run, and what keeps a new content from being rendered.
func (f addOnFacts) choice(wanted []wantedConfig) addon.Choice {
	choice := addon.Choice{Configs: make([]addon.ChosenConfig, 0, len(wanted)), Held: f.missing(wanted)}
	for _, w := range wanted {
		choice.Configs = append(choice.Configs, addon.ChosenConfig{
			ConfigGroupResource: w.ConfigGroupResource,
			ConfigSpecHash:      addonv1beta1.ConfigSpecHash{ConfigReferent: w.ConfigReferent, SpecHash: f.hash(w)},
		})
	}
	if strategy := f.strategy(); choice.Held == "" && !supported(strategy) {
		choice.Held = fmt.Sprintf("rollout strategy %s is not supported yet", strategy)
	}
	if waiting := f.waiting(wanted); choice.Held == "" && len(waiting) > 0 {
		choice.Held = listed(waiting)
	}
	return choice
}
