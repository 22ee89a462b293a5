package fleet

import (
	"context"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clusterv1beta2 "open-cluster-management.io/api/cluster/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/internal/reconcile"
)

const (
	// AskedEach is how many objects are asked for one by one; those of more are listed.
	AskedEach = 20
	// livePage is how many objects are listed at once: clusters that were never accepted may be large, and any number.
	livePage = 50
)

// Bound is what a cache has of the bindings of a namespace, and of all sets by name.
type Bound struct {
	Namespace string
	Bindings  []*clusterv1beta2.ManagedClusterSetBinding
	Sets      map[string]*clusterv1beta2.ManagedClusterSet
}

// Confirm returns an error, which is a lost race, if the bindings, or the sets that they bind, are not those that live,
// usually the API server, has: a cache that lacks one for a moment has not seen an edit. A user who edits another set
// all the time holds up nothing. The role has no right to get a set, so each is listed by its name. Only metadata are
// read.
func (b Bound) Confirm(ctx context.Context, live client.Reader) error {
	bound := map[string]bool{}
	for _, binding := range b.Bindings {
		bound[binding.Spec.ClusterSet] = true
	}
	c := confirming{live: live, namespace: b.Namespace}
	bindings := named(slices.Values(b.Bindings))
	if err := c.all(ctx, "ManagedClusterSetBinding", bindings, client.InNamespace(b.Namespace)); err != nil {
		return err
	}
	cached := named(maps.Values(b.Sets))
	maps.DeleteFunc(cached, func(name string, _ client.Object) bool { return !bound[name] })
	if c.only = bound; len(bound) > AskedEach {
		return c.all(ctx, "ManagedClusterSet", cached)
	}
	for name := range bound {
		one := map[string]client.Object{}
		if set, is := cached[name]; is {
			one[name] = set
		}
		if err := c.all(ctx, "ManagedClusterSet", one, client.MatchingFields{metav1.ObjectNameField: name}); err != nil {
			return err
		}
	}
	return nil
}

// confirming compares what a cache has with what an API server has.
type confirming struct {
	live      client.Reader
	namespace string
	// only are the names that concern the namespace; nil means all that are listed.
	only map[string]bool
}

// all compares the objects of a kind by their names.
func (c confirming) all(
	ctx context.Context, kind string, cached map[string]client.Object, in ...client.ListOption,
) error {
	behind := reconcile.Behind(clusterv1beta2.GroupName, strings.ToLower(kind)+"s", c.namespace)
	of := schema.GroupVersion(clusterv1beta2.GroupVersion).WithKind(kind)
	for live, err := range EachLive(ctx, c.live, of, in...) {
		if err != nil {
			return err
		}
		one, is := cached[live.Name]
		if concerns := c.only == nil || c.only[live.Name]; concerns && (!is || !SameSpec(live, one)) {
			return behind
		}
		delete(cached, live.Name)
	}
	if len(cached) > 0 {
		return behind
	}
	return nil
}

// named returns objects by their names.
func named[T client.Object](all iter.Seq[T]) map[string]client.Object {
	objects := map[string]client.Object{}
	for o := range all {
		objects[o.GetName()] = o
	}
	return objects
}

// EachLive returns the metadata of all objects of a kind that live, usually the API server, has, in pages. It ends with
// the first error. What it returns must not be kept.
func EachLive(
	ctx context.Context, live client.Reader, kind schema.GroupVersionKind, in ...client.ListOption,
) iter.Seq2[*metav1.PartialObjectMetadata, error] {
	newPage := func() *metav1.PartialObjectMetadataList {
		page := &metav1.PartialObjectMetadataList{}
		page.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
		return page
	}
	return func(yield func(*metav1.PartialObjectMetadata, error) bool) {
		for page, err := range reconcile.Pages(ctx, live, newPage, append(slices.Clone(in), client.Limit(livePage))...) {
			if err != nil {
				yield(nil, fmt.Errorf("looking at every %s, because Placements drop clusters: %w", kind.Kind, err))
				return
			}
			for i := range page.Items {
				if !yield(&page.Items[i], nil) {
					return
				}
			}
		}
	}
}

// SameSpec reports whether two copies of an object have the same spec.
func SameSpec(live *metav1.PartialObjectMetadata, cached client.Object) bool {
	return live.UID == cached.GetUID() && live.Generation == cached.GetGeneration() &&
		live.DeletionTimestamp.Equal(cached.GetDeletionTimestamp())
}
