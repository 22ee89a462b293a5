package placement

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/types"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	clusterv1beta2 "open-cluster-management.io/api/cluster/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/internal/reconcile"
)

// observe reads the facts about one Placement. The placement is nil when it is gone, being deleted, or scheduled by
// others.
func (r *Reconciler) observe(ctx context.Context, key types.NamespacedName) (facts, error) {
	f := facts{now: r.Clock.Now()}
	placement, err := reconcile.Get(ctx, r.Client, key, &clusterv1beta1.Placement{})
	if err != nil || placement == nil {
		return f, err
	}
	foreign := placement.Annotations[clusterv1beta1.PlacementDisableAnnotation] == "true"
	if foreign || !placement.DeletionTimestamp.IsZero() {
		return f, nil
	}
	var decisionSlices clusterv1beta1.PlacementDecisionList
	if err := r.Client.List(ctx, &decisionSlices, client.InNamespace(key.Namespace),
		client.MatchingLabels{names.LabelPlacement: key.Name}); err != nil {
		return f, fmt.Errorf("listing the decisions of Placement %s: %w", key, err)
	}
	f.decisionSlices = reconcile.Pointers(decisionSlices.Items)
	var clusters clusterv1.ManagedClusterList
	if err := r.Client.List(ctx, &clusters, client.UnsafeDisableDeepCopy); err != nil {
		return f, fmt.Errorf("listing clusters: %w", err)
	}
	f.clusters = reconcile.Pointers(clusters.Items)
	if err := r.observeSets(ctx, &f, key.Namespace); err != nil {
		return f, err
	}
	f.placement = placement
	return f, nil
}

// observeSets reads the cluster sets and their bindings to a namespace.
func (r *Reconciler) observeSets(ctx context.Context, f *facts, namespace string) error {
	var bindings clusterv1beta2.ManagedClusterSetBindingList
	if err := r.Client.List(ctx, &bindings, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("listing the ManagedClusterSetBindings of namespace %s: %w", namespace, err)
	}
	f.bindings = reconcile.Pointers(bindings.Items)
	var sets clusterv1beta2.ManagedClusterSetList
	if err := r.Client.List(ctx, &sets, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("listing ManagedClusterSets: %w", err)
	}
	f.sets = make(map[string]*clusterv1beta2.ManagedClusterSet, len(sets.Items))
	for i := range sets.Items {
		f.sets[sets.Items[i].Name] = &sets.Items[i]
	}
	return nil
}
