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

// Choose implements addon.Chooser. It decides from the same specs as the controllers of this package, but trusts no
// status of the add-on, because the agent of the cluster may write it.
func (r *Reconciler) Choose(ctx context.Context, addOn *addonv1beta1.ManagedClusterAddOn) (addon.Choice, error) {
	cma, err := r.AddOns.GetClusterManagementAddOn(ctx, addOn.Name)
	switch {
	case apierrors.IsNotFound(err):
		return addon.Choice{}, &addon.NotReadyError{Message: fmt.Sprintf(
			"there is no ClusterManagementAddOn %s, which says what the add-on is to run with", addOn.Name)}
	case err != nil:
		return addon.Choice{}, err
	}
	f := addOnFacts{addon: addOn, cma: cma, found: configStates{}}
	if f.placement, f.missingPlacements, err = r.owner(ctx, cma, addOn.Namespace); err != nil {
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
	cma, err := r.AddOns.GetClusterManagementAddOn(ctx, addOn)
	if err != nil {
		return nil, err
	}
	addOns, err := r.AddOns.ListAddOns(ctx, client.MatchingFields{addonapi.IndexName: addOn})
	if err != nil {
		return nil, err
	}
	named := slices.DeleteFunc(slices.Clone(cma.Spec.DefaultConfigs), func(c addonv1beta1.AddOnConfig) bool {
		return !addonapi.HasDefault(c)
	})
	for _, placement := range cma.Spec.InstallStrategy.Placements {
		named = append(named, placement.Configs...)
	}
	for _, a := range addOns {
		named = append(named, a.Spec.Configs...)
	}
	return named, nil
}
