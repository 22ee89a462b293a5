package configure

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1alpha1 "open-cluster-management.io/api/cluster/v1alpha1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/internal/addonapi"
	"github.com/spokelet/spokelet/internal/addonconfig"
	"github.com/spokelet/spokelet/internal/reconcile"
)

// observe reads the facts about one add-on.
func (c *Configurer) observe(ctx context.Context, addOn *addonv1beta1.ManagedClusterAddOn) (facts, error) {
	f := facts{addOn: addOn, placement: -1}
	cma, err := c.AddOns.GetClusterManagementAddOn(ctx, addOn.Name)
	switch {
	case apierrors.IsNotFound(err):
		return f, nil
	case err != nil:
		return f, err
	}
	f.cma = cma
	if f.placement, f.missingPlacements, err = c.owner(ctx, cma, addOn.Namespace); err != nil {
		return f, err
	}
	desired := addonconfig.DesiredConfigs(cma, f.placement, addOn.Spec.Configs)
	configs := make([]addonv1beta1.AddOnConfig, 0, len(desired))
	for _, d := range desired {
		configs = append(configs, d.AddOnConfig)
	}
	if f.states, err = c.Store.States(ctx, configs...); err != nil {
		return f, err
	}
	f.planned = c.planned(f)
	f.admission = Admission{Granted: true}
	if f.planned {
		f.admission = c.Admission(f.addOn, f.target().Rolled())
	}
	return f, nil
}

// planned reports whether a rollout decides about an add-on. One that no placement owns, or whose placement rolls out
// to all clusters at once, is admitted without being planned.
func (c *Configurer) planned(f facts) bool {
	if c.Admission == nil || f.placement < 0 {
		return false
	}
	kind := f.cma.Spec.InstallStrategy.Placements[f.placement].RolloutStrategy.Type
	return kind != "" && kind != clusterv1alpha1.All
}

// owner returns the index of the last placement that selects a cluster. If none does, it returns -1 and the listed
// placements that do not exist.
func (c *Configurer) owner(
	ctx context.Context, cma *addonv1beta1.ClusterManagementAddOn, cluster string,
) (int, []string, error) {
	placements := addonconfig.PlacementsOf(cma)
	if len(placements) == 0 {
		return -1, nil, nil
	}
	var decisions clusterv1beta1.PlacementDecisionList
	err := c.Client.List(ctx, &decisions, client.MatchingFields{addonapi.IndexCluster: cluster},
		client.UnsafeDisableDeepCopy)
	if err != nil {
		return -1, nil, fmt.Errorf("listing the placement decisions for cluster %s: %w", cluster, err)
	}
	selecting := map[addonv1beta1.PlacementRef]bool{}
	for i := range decisions.Items {
		selecting[addonapi.PlacementOf(&decisions.Items[i])] = true
	}
	for index := len(placements) - 1; index >= 0; index-- {
		if selecting[placements[index].PlacementRef] {
			return index, nil, nil
		}
	}
	var missing []string
	for _, placement := range placements {
		key := types.NamespacedName{Namespace: placement.Namespace, Name: placement.Name}
		found, err := reconcile.Get(ctx, c.Client, key, &clusterv1beta1.Placement{}, client.UnsafeDisableDeepCopy)
		if err != nil {
			return -1, nil, err
		}
		if found == nil {
			missing = append(missing, "placement "+key.String())
		}
	}
	return -1, missing, nil
}
