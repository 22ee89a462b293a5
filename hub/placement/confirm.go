package placement

import (
	"context"
	"maps"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/internal/reconcile"
)

// confirm returns an error, which is a lost race, if a Placement that drops clusters is not the one that the API server
// has: of a user who edits a Placement and then labels, a cache may show the labels first. Where a Placement has a
// number of clusters, others take the place of those that are dropped, and keep it, so these are confirmed as well:
// their labels and taints, for what an agent says of its cluster may change at any time.
func (r *Reconciler) confirm(ctx context.Context, f facts, dropped []string) error {
	if len(dropped) == 0 {
		return nil
	}
	key := client.ObjectKeyFromObject(f.placement)
	placement := schema.GroupVersion(clusterv1beta1.GroupVersion).WithKind("Placement")
	if err := r.confirmOne(ctx, placement, "placements", key, f.placement); err != nil {
		return err
	}
	if f.placement.Spec.NumberOfClusters == nil {
		return nil
	}
	known := make(map[string]*clusterv1.ManagedCluster, len(f.clusters))
	for _, c := range f.clusters {
		known[c.Name] = c
	}
	for _, name := range dropped {
		var cached client.Object
		if c := known[name]; c != nil {
			cached = c
		}
		kind := schema.GroupVersion(clusterv1.GroupVersion).WithKind("ManagedCluster")
		if err := r.confirmOne(ctx, kind, "managedclusters", types.NamespacedName{Name: name}, cached); err != nil {
			return err
		}
	}
	return nil
}

// confirmOne compares an object, nil where it does not exist, with that of the API server, of which it reads metadata.
func (r *Reconciler) confirmOne(
	ctx context.Context, kind schema.GroupVersionKind, resource string, key types.NamespacedName, cached client.Object,
) error {
	into := &metav1.PartialObjectMetadata{}
	into.SetGroupVersionKind(kind)
	live, err := reconcile.Get(ctx, r.Live, key, into)
	if err != nil {
		return err
	}
	if (live == nil && cached == nil) || (live != nil && cached != nil && asKnown(live, cached)) {
		return nil
	}
	return reconcile.Behind(kind.Group, resource, key.String())
}

// asKnown reports whether two copies of an object have the same spec, labels and end.
func asKnown(live *metav1.PartialObjectMetadata, cached client.Object) bool {
	return live.UID == cached.GetUID() && live.Generation == cached.GetGeneration() &&
		live.DeletionTimestamp.Equal(cached.GetDeletionTimestamp()) && maps.Equal(live.Labels, cached.GetLabels())
}
