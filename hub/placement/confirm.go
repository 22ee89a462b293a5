package placement

import (
	"context"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	clusterv1beta2 "open-cluster-management.io/api/cluster/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/internal/reconcile"
)

// confirm returns an error, which is a lost race, if a Placement that drops clusters, one of these, or a set or binding
// is not the one that the API server has: of a user who edits a Placement and labels, a cache may show either first,
// and who takes the place of a cluster that is dropped may keep it. Labels and taints are compared, for what an agent
// says of its cluster may change at any time.
func (r *Reconciler) confirm(ctx context.Context, f facts, dropped []string) error {
	if len(dropped) == 0 {
		return nil
	}
	key, placement := client.ObjectKeyFromObject(f.placement), &metav1.PartialObjectMetadata{}
	placement.SetGroupVersionKind(schema.GroupVersion(clusterv1beta1.GroupVersion).WithKind("Placement"))
	placement, err := reconcile.Get(ctx, r.Live, key, placement)
	if apierrors.IsForbidden(err) {
		return nil // The rights of an earlier version do not let us ask; removals ask, too.
	}
	if err != nil {
		return err
	}
	const foreign, unbound = clusterv1beta1.PlacementDisableAnnotation, names.AnnotationSetBindings
	if placement == nil || !sameSpec(placement, f.placement) || placement.Annotations[foreign] == "true" ||
		placement.Annotations[unbound] != f.placement.Annotations[unbound] {
		return reconcile.Behind(clusterv1beta1.GroupName, "placements", key.String())
	}
	if err := r.confirmSets(ctx, f); err != nil {
		return err
	}
	live, err := r.liveClusters(ctx, dropped)
	if err != nil {
		return err
	}
	left := askedEach
	for _, c := range f.clusters {
		one := live[c.Name]
		if one == nil || !maps.Equal(one.Labels, c.Labels) {
			continue
		}
		same := sameSpec(one, c)
		if !same && one.UID == c.UID && left > 0 && slices.Contains(dropped, c.Name) {
			left--
			if same, err = r.sameTaints(ctx, c); err != nil {
				return err
			}
		}
		if same {
			delete(live, c.Name)
		}
	}
	for _, name := range dropped { // One that does not exist is in no cache, or will not be for long.
		if live[name] != nil {
			return reconcile.Behind(clusterv1.GroupName, "managedclusters", name)
		}
	}
	return nil
}

// confirmSets compares the bindings of the namespace, and the sets that they bind: whoever edits another set all the time
// holds up nothing here.
func (r *Reconciler) confirmSets(ctx context.Context, f facts) error {
	bound := map[string]bool{}
	for _, binding := range f.bindings {
		bound[binding.Spec.ClusterSet] = true
	}
	sets := byName(maps.Values(f.sets))
	maps.DeleteFunc(sets, func(name string, _ client.Object) bool { return !bound[name] })
	every := func(string) bool { return true }
	bindings := byName(slices.Values(f.bindings))
	err := r.confirmAll(ctx, f, "ManagedClusterSetBinding", bindings, every, client.InNamespace(f.placement.Namespace))
	if err != nil {
		return err
	}
	return r.confirmAll(ctx, f, "ManagedClusterSet", sets, func(name string) bool { return bound[name] })
}

// confirmAll compares the objects of a kind that concern a Placement, by their names.
func (r *Reconciler) confirmAll(
	ctx context.Context, f facts, kind string, cached map[string]client.Object, concerns func(string) bool,
	in ...client.ListOption,
) error {
	var live metav1.PartialObjectMetadataList
	live.SetGroupVersionKind(schema.GroupVersion(clusterv1beta2.GroupVersion).WithKind(kind + "List"))
	if err := r.Live.List(ctx, &live, in...); err != nil {
		return fmt.Errorf("listing what a Placement that drops clusters selects from: %w", err)
	}
	for i := range live.Items {
		name := live.Items[i].Name
		if !concerns(name) {
			continue
		}
		if one, is := cached[name]; !is || !sameSpec(&live.Items[i], one) {
			return reconcile.Behind(clusterv1beta2.GroupName, strings.ToLower(kind)+"s", f.placement.Namespace)
		}
		delete(cached, name)
	}
	if len(cached) > 0 {
		return reconcile.Behind(clusterv1beta2.GroupName, strings.ToLower(kind)+"s", f.placement.Namespace)
	}
	return nil
}

// byName returns objects by their names.
func byName[T client.Object](all iter.Seq[T]) map[string]client.Object {
	objects := map[string]client.Object{}
	for o := range all {
		objects[o.GetName()] = o
	}
	return objects
}

// askedEach is how many clusters are asked for one by one; those of more are listed at once.
const askedEach = 20

// liveClusters returns the metadata of the clusters that the API server has, at least of those with some names.
func (r *Reconciler) liveClusters(
	ctx context.Context, names []string,
) (map[string]*metav1.PartialObjectMetadata, error) {
	live := map[string]*metav1.PartialObjectMetadata{}
	kind := schema.GroupVersion(clusterv1.GroupVersion).WithKind("ManagedCluster")
	if len(names) > askedEach {
		var list metav1.PartialObjectMetadataList
		list.SetGroupVersionKind(kind.GroupVersion().WithKind("ManagedClusterList"))
		if err := r.Live.List(ctx, &list); err != nil {
			return nil, fmt.Errorf("listing the clusters, of which a Placement drops some: %w", err)
		}
		for i := range list.Items {
			live[list.Items[i].Name] = &list.Items[i]
		}
		return live, nil
	}
	for _, name := range names {
		one := &metav1.PartialObjectMetadata{}
		one.SetGroupVersionKind(kind)
		one, err := reconcile.Get(ctx, r.Live, types.NamespacedName{Name: name}, one)
		if err != nil {
			return nil, err
		}
		live[name] = one
	}
	return live, nil
}

// sameTaints reports whether a cluster, of which the API server has another generation, is the same but for its
// addresses: its agent writes those, and could hold up the others by writing them all the time.
func (r *Reconciler) sameTaints(ctx context.Context, cached *clusterv1.ManagedCluster) (bool, error) {
	live, err := reconcile.Get(ctx, r.Live, client.ObjectKeyFromObject(cached), &clusterv1.ManagedCluster{})
	return live != nil && live.UID == cached.UID && maps.Equal(live.Labels, cached.Labels) &&
		live.DeletionTimestamp.Equal(cached.DeletionTimestamp) &&
		live.Spec.HubAcceptsClient == cached.Spec.HubAcceptsClient &&
		equality.Semantic.DeepEqual(live.Spec.Taints, cached.Spec.Taints), err
}

// sameSpec reports whether two copies of an object have the same spec.
func sameSpec(live *metav1.PartialObjectMetadata, cached client.Object) bool {
	return live.UID == cached.GetUID() && live.Generation == cached.GetGeneration() &&
		live.DeletionTimestamp.Equal(cached.GetDeletionTimestamp())
}
