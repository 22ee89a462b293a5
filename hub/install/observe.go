package install

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/internal/addonapi"
	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/internal/reconcile"
)

// observe reads the facts about one add-on on one cluster from the cache.
func (r *Reconciler) observe(ctx context.Context, key types.NamespacedName) (facts, error) {
	f := facts{now: r.Clock.Now(), cluster: key.Namespace, asOCM: r.TrustAsOCM}
	var err error
	if f.cma, err = r.AddOns.PeekClusterManagementAddOn(ctx, key.Name); err != nil || f.cma == nil {
		return f, err
	}
	if f.addon, err = r.AddOns.PeekAddOn(ctx, key); err != nil {
		return f, err
	}
	if f.managed, err = r.cluster(ctx, key.Namespace); err != nil {
		return f, err
	}
	if f.managed == nil {
		r.memory.came(key.Name, key.Namespace) // Nothing is installed there again.
	}
	f.namespace, err = reconcile.Get(ctx, r.Client, types.NamespacedName{Name: key.Namespace}, reconcile.Namespace(),
		client.UnsafeDisableDeepCopy)
	if err != nil {
		return f, err
	}
	f.selected, err = r.selected(ctx, key.Namespace, addonapi.StrategyOf(f.cma))
	_, notReady := unready(f)
	went := f.selected && f.addon == nil && notReady == nil && r.memory.went(key.Name, key.Namespace)
	if err == nil && (went || getsOwner(f)) {
		f.outdated, err = r.isOutdated(ctx, f.cma)
	}
	return f, err
}

// cluster reads a ManagedCluster, which must not be changed; nil when it does not exist.
func (r *Reconciler) cluster(ctx context.Context, name string) (*clusterv1.ManagedCluster, error) {
	return reconcile.Get(ctx, r.Client, types.NamespacedName{Name: name}, &clusterv1.ManagedCluster{},
		client.UnsafeDisableDeepCopy)
}

// selected reports whether a placement of an install strategy selects a cluster.
func (r *Reconciler) selected(ctx context.Context, cluster string, strategy addonapi.Strategy) (bool, error) {
	if len(strategy.Placements) == 0 {
		return false, nil
	}
	selecting, err := r.placementsOf(ctx, cluster)
	if err != nil {
		return false, err
	}
	for _, key := range strategy.Placements {
		if selecting[key] {
			return true, nil
		}
	}
	return false, nil
}

// placementsOf returns the placements that select a cluster.
func (r *Reconciler) placementsOf(ctx context.Context, cluster string) (map[types.NamespacedName]bool, error) {
	var pages clusterv1beta1.PlacementDecisionList
	if err := r.Client.List(ctx, &pages, client.UnsafeDisableDeepCopy,
		client.MatchingFields{addonapi.IndexCluster: cluster}); err != nil {
		return nil, fmt.Errorf("finding the placements that select cluster %s: %w", cluster, err)
	}
	keys := make(map[types.NamespacedName]bool, len(pages.Items))
	for i := range pages.Items {
		if key, ok := placementOf(&pages.Items[i]); ok {
			keys[key] = true
		}
	}
	return keys, nil
}

// placementOf returns the placement that a PlacementDecision belongs to.
func placementOf(page client.Object) (types.NamespacedName, bool) {
	name := page.GetLabels()[names.LabelPlacement]
	return types.NamespacedName{Namespace: page.GetNamespace(), Name: name}, name != ""
}

// isOutdated reports whether the cache has a ClusterManagementAddOn that is gone or going, or another one of that name.
// The garbage collector deletes its add-ons then, and would do so again and again with those that are installed again.
func (r *Reconciler) isOutdated(ctx context.Context, cached client.Object) (bool, error) {
	key := client.ObjectKeyFromObject(cached)
	live, err := reconcile.Get(ctx, r.Live, key, r.AddOns.MetadataOfClusterManagementAddOn())
	if apierrors.IsForbidden(err) {
		return false, nil // The rights of an earlier version do not let us ask.
	}
	return err == nil && (live == nil || live.GetUID() != cached.GetUID() || !live.GetDeletionTimestamp().IsZero()), err
}
