package placement

import (
	"context"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	clusterv1beta2 "open-cluster-management.io/api/cluster/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/hub/fleet"
	"github.com/spokelet/spokelet/internal/decode"
	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/internal/reconcile"
)

// observe reads the facts about one Placement, and returns what it is interested in.
func (r *Reconciler) observe(ctx context.Context, key types.NamespacedName) (f facts, in interest, err error) {
	if f, err = r.observePlacement(ctx, key); err == nil && f.placement != nil {
		in, err = r.observeFleet(ctx, key, &f)
	}
	return f, in, err
}

// observePlacement reads the facts about one Placement, the cluster sets and the clusters aside. The placement is nil
// when it is gone, and has only its key when it is gone and decisions stay, or when it cannot be decoded.
func (r *Reconciler) observePlacement(ctx context.Context, key types.NamespacedName) (facts, error) {
	f := facts{now: r.Clock.Now(), key: key}
	placement, err := reconcile.Get(ctx, r.Client, key, &clusterv1beta1.Placement{})
	if f.undecoded = err; err != nil && !decode.IsUnknown(err) {
		return f, err
	}
	if f.orphaned = placement == nil && err == nil; placement == nil {
		placement = &clusterv1beta1.Placement{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}
	}
	f.frozen = f.orphaned || f.undecoded != nil || fleet.IsScheduledByOthers(placement) ||
		!placement.DeletionTimestamp.IsZero()
	if err := r.observeSlices(ctx, &f, placement); err != nil {
		return f, err
	}
	if f.orphaned && !slices.ContainsFunc(f.decisionSlices, isOrphan) {
		return f, nil
	}
	f.outside, _ = r.memory.outside.Get(key)
	var bindings clusterv1beta2.ManagedClusterSetBindingList
	if err := r.Client.List(ctx, &bindings, client.InNamespace(key.Namespace), client.UnsafeDisableDeepCopy); err != nil {
		return f, fmt.Errorf("listing the ManagedClusterSetBindings of namespace %s: %w", key.Namespace, err)
	}
	f.bindings = reconcile.Pointers(bindings.Items)
	f.placement, f.rules = placement, r.memory.rulesOf(placement, key)
	return f, nil
}

// isOrphan reports whether a PlacementDecision that this controller made stays without its Placement: a user who
// deletes one may ask for that (propagationPolicy: Orphan).
func isOrphan(page *clusterv1beta1.PlacementDecision) bool {
	_, ours := page.Annotations[names.AnnotationStickyPages]
	return ours && metav1.GetControllerOf(page) == nil && page.DeletionTimestamp.IsZero()
}

// observeSlices reads the decisions of a Placement: those with its label, and those that it owns, because a person may
// have removed the label.
func (r *Reconciler) observeSlices(ctx context.Context, f *facts, placement *clusterv1beta1.Placement) error {
	var list clusterv1beta1.PlacementDecisionList
	err := r.Client.List(ctx, &list, client.InNamespace(placement.Namespace), client.UnsafeDisableDeepCopy)
	if err != nil {
		return fmt.Errorf("listing the decisions of Placement %s: %w", client.ObjectKeyFromObject(placement), err)
	}
	for _, o := range reconcile.Pointers(list.Items) {
		if o.Labels[names.LabelPlacement] == placement.Name || metav1.IsControlledBy(o, placement) {
			f.decisionSlices = append(f.decisionSlices, o)
		} else {
			f.taken = append(f.taken, o.Name)
		}
	}
	return nil
}

// observeFleet reads the cluster sets and the clusters, and returns what the Placement is interested in. It remembers
// that first, so that no change is missed: what changes earlier is read here, and what changes later is compared with
// what is remembered.
func (r *Reconciler) observeFleet(ctx context.Context, key types.NamespacedName, f *facts) (in interest, err error) {
	r.memory.remember(f.placement, key, interestOf(*f))
	if f.sets, err = r.observeSets(ctx); err != nil {
		return in, err
	}
	for _, binding := range f.bindings {
		set := f.sets[binding.Spec.ClusterSet]
		if set == nil {
			continue
		}
		if err := decode.Check("ManagedClusterSet", set); err != nil {
			return in, err
		}
	}
	in = interestOf(*f)
	r.memory.remember(f.placement, key, in)
	f.clusters, err = r.observeClusters(ctx)
	return in, err
}

// observeClusters reads all clusters. Of those that cannot be decoded, only the metadata is known.
func (r *Reconciler) observeClusters(ctx context.Context) ([]*clusterv1.ManagedCluster, error) {
	var clusters clusterv1.ManagedClusterList
	if err := r.Client.List(ctx, &clusters, client.UnsafeDisableDeepCopy, decode.Metadata); err != nil {
		return nil, fmt.Errorf("listing clusters: %w", err)
	}
	return reconcile.Pointers(clusters.Items), nil
}

// observeSets reads all cluster sets by name, also those that cannot be decoded, which matter where they are bound.
func (r *Reconciler) observeSets(ctx context.Context) (map[string]*clusterv1beta2.ManagedClusterSet, error) {
	var list clusterv1beta2.ManagedClusterSetList
	if err := r.Client.List(ctx, &list, client.UnsafeDisableDeepCopy, decode.Metadata); err != nil {
		return nil, fmt.Errorf("listing ManagedClusterSets: %w", err)
	}
	sets := make(map[string]*clusterv1beta2.ManagedClusterSet, len(list.Items))
	for _, set := range reconcile.Pointers(list.Items) {
		sets[set.Name] = set
	}
	return sets, nil
}
