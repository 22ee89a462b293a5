package placement

import (
	"context"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	clusterv1beta2 "open-cluster-management.io/api/cluster/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/internal/decode"
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
	const foreign, unbound = clusterv1beta1.PlacementDisableAnnotation, names.AnnotationSetBindings
	if placement == nil || !sameSpec(placement, f.placement) || placement.Annotations[foreign] == "true" ||
		placement.Annotations[unbound] != f.placement.Annotations[unbound] {
		return false, reconcile.Behind(clusterv1beta1.GroupName, "placements", key.String())
	}
	return true, r.confirmSets(ctx, f)
}

// confirmSets compares the bindings of the namespace, and the sets that they bind: whoever edits another set all the
// time holds up nothing here. The role has no right to get a set, so each is listed by its name.
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
	if len(bound) > askedEach {
		return r.confirmAll(ctx, f, "ManagedClusterSet", sets, func(name string) bool { return bound[name] })
	}
	for name := range bound {
		one := map[string]client.Object{}
		if set, is := sets[name]; is {
			one[name] = set
		}
		named := client.MatchingFields{metav1.ObjectNameField: name}
		if err := r.confirmAll(ctx, f, "ManagedClusterSet", one, every, named); err != nil {
			return err
		}
	}
	return nil
}

// confirmAll compares the objects of a kind that concern a Placement, by their names.
func (r *Reconciler) confirmAll(
	ctx context.Context, f facts, kind string, cached map[string]client.Object, concerns func(string) bool,
	in ...client.ListOption,
) error {
	behind := reconcile.Behind(clusterv1beta2.GroupName, strings.ToLower(kind)+"s", f.placement.Namespace)
	of := schema.GroupVersion(clusterv1beta2.GroupVersion).WithKind(kind)
	err := r.each(ctx, of, func(live *metav1.PartialObjectMetadata) error {
		if one, is := cached[live.Name]; concerns(live.Name) && (!is || !sameSpec(live, one)) {
			return behind
		}
		delete(cached, live.Name)
		return nil
	}, in...)
	if err == nil && len(cached) > 0 {
		return behind
	}
	return err
}

// byName returns objects by their names.
func byName[T client.Object](all iter.Seq[T]) map[string]client.Object {
	objects := map[string]client.Object{}
	for o := range all {
		objects[o.GetName()] = o
	}
	return objects
}

const (
	// askedEach is how many clusters are asked for one by one; those of more are listed.
	askedEach = 20
	// maxOther is how many clusters are judged as the API server has them; if more differ, those stay selected until the
	// cache has them, too.
	maxOther = 50
	// livePage is how many objects are listed at once: clusters that were never accepted may be large, and any number.
	livePage = 50
)

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

// isUnknown reports whether only the metadata of a cluster are known, because it cannot be decoded; not of nil.
func isUnknown(cluster *clusterv1.ManagedCluster) bool {
	if cluster == nil {
		return false
	}
	_, unknown := decode.Unknown(cluster)
	return unknown
}

// judgesAlike reports whether the Placement decides the same about a cluster as about a copy of it in a cache. What
// agents say of their clusters counts where the Placement asks for it.
func (f *facts) judgesAlike(live *metav1.PartialObjectMetadata, cached *clusterv1.ManagedCluster) bool {
	asks := (len(f.rules.claims) > 0 || f.rules.expressions) && !isUnknown(cached) // of which only metadata count
	return sameSpec(live, cached) && maps.Equal(live.Labels, cached.Labels) &&
		(!asks || live.ResourceVersion == cached.ResourceVersion)
}

// liveClusters returns what the API server has of the clusters with some names: of the metadata, what is compared. One
// pass lists at a time.
func (r *Reconciler) liveClusters(
	ctx context.Context, names []string,
) (map[string]*metav1.PartialObjectMetadata, error) {
	live := map[string]*metav1.PartialObjectMetadata{}
	kind := schema.GroupVersion(clusterv1.GroupVersion).WithKind("ManagedCluster")
	if len(names) > askedEach {
		leave, err := r.listing.Enter(ctx, "list the clusters, of which a Placement drops some")
		if err != nil {
			return nil, err
		}
		defer leave()
		err = r.each(ctx, kind, func(c *metav1.PartialObjectMetadata) error {
			if _, asked := slices.BinarySearch(names, c.Name); asked {
				live[c.Name] = &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
					UID: c.UID, ResourceVersion: c.ResourceVersion, Generation: c.Generation,
					DeletionTimestamp: c.DeletionTimestamp, Labels: maps.Clone(c.Labels),
				}}
			}
			return nil
		})
		return live, err
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

// each shows the metadata of all objects of a kind, in pages. What is shown must not be kept.
func (r *Reconciler) each(
	ctx context.Context, kind schema.GroupVersionKind, see func(*metav1.PartialObjectMetadata) error,
	in ...client.ListOption,
) error {
	newPage := func() *metav1.PartialObjectMetadataList {
		page := &metav1.PartialObjectMetadataList{}
		page.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
		return page
	}
	err := reconcile.InPages(ctx, r.Live, livePage, newPage, func(page *metav1.PartialObjectMetadataList) error {
		for i := range page.Items {
			if err := see(&page.Items[i]); err != nil {
				return err
			}
		}
		return nil
	}, in...)
	if err != nil {
		return fmt.Errorf("looking at every %s, because a Placement drops clusters: %w", kind.Kind, err)
	}
	return nil
}

// sameSpec reports whether two copies of an object have the same spec.
func sameSpec(live *metav1.PartialObjectMetadata, cached client.Object) bool {
	return live.UID == cached.GetUID() && live.Generation == cached.GetGeneration() &&
		live.DeletionTimestamp.Equal(cached.GetDeletionTimestamp())
}
