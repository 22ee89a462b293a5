package placement

import (
	"context"
	"maps"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/hub/fleet"
	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/internal/reconcile"
)

// confirm returns a plan that drops no cluster by what only the cache says: the plan, or another one where the API
// server has other labels or another spec of a cluster that it drops. Of a user who edits a Placement and labels, a
// cache may show either first, and who takes the place of a cluster that is dropped may keep it. An error, which is a
// lost race, says that the Placement, or a set or binding, is not the one that the API server has.
//
// A cluster that differs is judged as the API server has it, and the pass goes on: an agent may write labels and
// addresses of its cluster all the time.
func (r *Reconciler) confirm(ctx context.Context, f *facts, in interest, p plan) (plan, error) {
	confirmed := map[string]bool{}
	for looks := 0; ; looks++ {
		left := slices.DeleteFunc(slices.Clone(p.dropped), func(name string) bool { return confirmed[name] })
		switch {
		case len(left) == 0:
			return p, nil
		case looks == maxLooks:
			return p, reconcile.Behind(clusterv1.GroupName, "managedclusters", left[0])
		}
		if len(confirmed) == 0 {
			asked, err := r.confirmScope(ctx, *f)
			if err != nil || !asked {
				return p, err
			}
		}
		other, err := r.look(ctx, f, left)
		if err != nil {
			return p, err
		}
		for _, name := range left {
			confirmed[name] = true
		}
		if other {
			p = decide(*f, in)
		}
	}
}

// maxLooks is how often a pass decides at most: judged as it is, a cluster may take the place of another one.
const maxLooks = 4

// confirmScope compares the Placement, its bindings and sets. False means that the rights of an earlier version do not
// let us ask; removals ask, too.
func (r *Reconciler) confirmScope(ctx context.Context, f facts) (asked bool, err error) {
	key, placement := client.ObjectKeyFromObject(f.placement), &metav1.PartialObjectMetadata{}
	placement.SetGroupVersionKind(schema.GroupVersion(clusterv1beta1.GroupVersion).WithKind("Placement"))
	placement, err = reconcile.Get(ctx, r.Live, key, placement)
	if apierrors.IsForbidden(err) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	const unbound = names.AnnotationSetBindings
	switch {
	case f.orphaned && placement == nil, f.undecoded != nil && placement != nil: // There is no more to compare.
	case placement == nil, !fleet.SameSpec(placement, f.placement),
		fleet.IsScheduledByOthers(placement) != fleet.IsScheduledByOthers(f.placement),
		placement.Annotations[unbound] != f.placement.Annotations[unbound]:
		return false, reconcile.Behind(clusterv1beta1.GroupName, "placements", key.String())
	}
	return true, fleet.Bound{Namespace: key.Namespace, Bindings: f.bindings, Sets: f.sets}.Confirm(ctx, r.Live)
}

// maxOther is how many clusters are judged as the API server has them; if more differ, those stay selected until the
// cache has them, too.
const maxOther = 50

// look asks the API server for clusters, and takes over those that differ. It reports whether there are any.
func (r *Reconciler) look(ctx context.Context, f *facts, dropped []string) (other bool, err error) {
	live, err := r.liveClusters(ctx, dropped)
	if err != nil {
		return false, err
	}
	at := map[string]int{}
	for i, c := range f.clusters {
		at[c.Name] = i
	}
	taken := 0
	for _, name := range dropped { // One that does not exist is in no cache, or will not be for long.
		i, known := at[name]
		one := live[name]
		if one == nil || (known && f.judgesAlike(one, f.clusters[i])) {
			continue
		}
		if taken++; taken > maxOther || (known && isUnknown(f.clusters[i])) {
			if !known { // An agent cannot make its cluster one that the cache lacks, and it has a group by what is not read.
				return false, reconcile.Behind(clusterv1.GroupName, "managedclusters", name)
			}
			if f.unread == nil {
				f.unread = map[string]bool{}
			}
			f.unread[name], other = true, true
			continue
		}
		whole, err := reconcile.Get(ctx, r.Live, types.NamespacedName{Name: name}, &clusterv1.ManagedCluster{})
		switch {
		case err != nil:
			return false, err
		case whole == nil:
			continue
		}
		whole.ManagedFields = nil // of any size, and not judged
		if other = true; known {
			f.clusters[i] = whole
		} else {
			f.clusters = append(f.clusters, whole)
		}
	}
	return other, nil
}

// judgesAlike reports whether the Placement decides the same about a cluster as about a copy of it in a cache. What
// agents say of their clusters counts where the Placement asks for it.
func (f *facts) judgesAlike(live *metav1.PartialObjectMetadata, cached *clusterv1.ManagedCluster) bool {
	asks := (len(f.rules.claims) > 0 || f.rules.expressions) && !isUnknown(cached) // of which only metadata count
	return fleet.SameSpec(live, cached) && maps.Equal(live.Labels, cached.Labels) &&
		(!asks || live.ResourceVersion == cached.ResourceVersion)
}

// liveClusters returns what the API server has of the clusters with some names: of the metadata, what is compared. One
// pass lists at a time.
func (r *Reconciler) liveClusters(
	ctx context.Context, names []string,
) (map[string]*metav1.PartialObjectMetadata, error) {
	live := map[string]*metav1.PartialObjectMetadata{}
	kind := schema.GroupVersion(clusterv1.GroupVersion).WithKind("ManagedCluster")
	if len(names) > fleet.AskedEach {
		leave, err := r.listing.Enter(ctx, "list the clusters, of which a Placement drops some")
		if err != nil {
			return nil, err
		}
		defer leave()
		for c, err := range fleet.EachLive(ctx, r.Live, kind) {
			if err != nil {
				return nil, err
			}
			if _, asked := slices.BinarySearch(names, c.Name); asked {
				live[c.Name] = &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
					UID: c.UID, ResourceVersion: c.ResourceVersion, Generation: c.Generation,
					DeletionTimestamp: c.DeletionTimestamp, Labels: maps.Clone(c.Labels),
				}}
			}
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
