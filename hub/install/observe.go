package install

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/internal/addonapi"
	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/internal/reconcile"
)

// observe reads the facts about one add-on on one cluster from the cache.
func (r *Reconciler) observe(ctx context.Context, key types.NamespacedName) (facts, error) {
	f := facts{now: r.Clock.Now(), cluster: key.Namespace}
	var err error
	f.cma, err = r.AddOns.GetClusterManagementAddOn(ctx, key.Name)
	if apierrors.IsNotFound(err) {
		return f, nil
	}
	if err != nil {
		return f, err
	}
	if f.addon, err = r.AddOns.GetAddOn(ctx, key); client.IgnoreNotFound(err) != nil {
		return f, err
	}
	cluster := types.NamespacedName{Name: key.Namespace}
	if f.managed, err = reconcile.Get(ctx, r.Client, cluster, &clusterv1.ManagedCluster{}); err != nil {
		return f, err
	}
	if f.namespace, err = reconcile.Get(ctx, r.Client, cluster, reconcile.Namespace()); err != nil {
		return f, err
	}
	f.placements, err = r.placements(ctx, f.cma)
	return f, err
}

// placements reads the Placements of an install strategy with their PlacementDecisions.
func (r *Reconciler) placements(
	ctx context.Context, cma *addonv1beta1.ClusterManagementAddOn,
) ([]placementFacts, error) {
	if !addonapi.InstalledByPlacements(cma) {
		return nil, nil
	}
	all := make([]placementFacts, 0, len(cma.Spec.InstallStrategy.Placements))
	for _, ref := range cma.Spec.InstallStrategy.Placements {
		p := placementFacts{key: types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name}}
		var err error
		if p.placement, err = reconcile.Get(ctx, r.Client, p.key, &clusterv1beta1.Placement{}); err != nil {
			return nil, err
		}
		var decisions clusterv1beta1.PlacementDecisionList
		if err := r.Client.List(ctx, &decisions, client.InNamespace(ref.Namespace), client.UnsafeDisableDeepCopy,
			client.MatchingLabels{names.LabelPlacement: ref.Name}); err != nil {
			return nil, fmt.Errorf("listing the decisions of Placement %s: %w", p.key, err)
		}
		p.decisions = reconcile.Pointers(decisions.Items)
		all = append(all, p)
	}
	return all, nil
}
