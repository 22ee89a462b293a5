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

// ConfirmSets returns an error, which is a lost race, if the bindings of a namespace, or the sets that they bind, are
// not those that live, usually the API server, has: a cache that lacks one for a moment has not seen an edit. A user
// who edits another set all the time holds up nothing. The role has no right to get a set, so each is listed by its
// name. Only metadata are read.
func ConfirmSets(
	ctx context.Context, live client.Reader, namespace string, bindings []*clusterv1beta2.ManagedClusterSetBinding,
	sets map[string]*clusterv1beta2.ManagedClusterSet,
) error {
	bound := map[string]bool{}
	for _, binding := range bindings {
		bound[binding.Spec.ClusterSet] = true
	}
	every := func(string) bool { return true }
	c := confirming{live: live, namespace: namespace}
	err := c.all(ctx, "ManagedClusterSetBinding", named(slices.Values(bindings)), every, client.InNamespace(namespace))
	if err != nil {
		return err
	}
	cached := named(maps.Values(sets))
	maps.DeleteFunc(cached, func(name string, _ client.Object) bool { return !bound[name] })
	if len(bound) > AskedEach {
		return c.all(ctx, "ManagedClusterSet", cached, func(name string) bool { return bound[name] })
	}
	for name := range bound {
		one := map[string]client.Object{}
		if set, is := cached[name]; is {
			one[name] = set
		}
		named := client.MatchingFields{metav1.ObjectNameField: name}
		if err := c.all(ctx, "ManagedClusterSet", one, every, named); err != nil {
			return err
		}
	}
	return nil
}

// confirming compares what a cache has with what an API server has.
type confirming struct {
	live      client.Reader
	namespace string
}

// all compares the objects of a kind that concern the namespace, by their names.
func (c confirming) all(
	ctx context.Context, kind string, cached map[string]client.Object, concerns func(string) bool,
	in ...client.ListOption,
) error {
	behind := reconcile.Behind(clusterv1beta2.GroupName, strings.ToLower(kind)+"s", c.namespace)
	of := schema.GroupVersion(clusterv1beta2.GroupVersion).WithKind(kind)
	err := EachLive(ctx, c.live, of, func(live *metav1.PartialObjectMetadata) error {
		if one, is := cached[live.Name]; concerns(live.Name) && (!is || !SameSpec(live, one)) {
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

// named returns objects by their names.
func named[T client.Object](all iter.Seq[T]) map[string]client.Object {
	objects := map[string]client.Object{}
	for o := range all {
		objects[o.GetName()] = o
	}
	return objects
}

// EachLive shows the metadata of all objects of a kind that live, usually the API server, has, in pages. What is shown
// must not be kept.
func EachLive(
	ctx context.Context, live client.Reader, kind schema.GroupVersionKind, see func(*metav1.PartialObjectMetadata) error,
	in ...client.ListOption,
) error {
	newPage := func() *metav1.PartialObjectMetadataList {
		page := &metav1.PartialObjectMetadataList{}
		page.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
		return page
	}
	err := reconcile.InPages(ctx, live, livePage, newPage, func(page *metav1.PartialObjectMetadataList) error {
		for i := range page.Items {
			if err := see(&page.Items[i]); err != nil {
				return err
			}
		}
		return nil
	}, in...)
	if err != nil {
		return fmt.Errorf("looking at every %s, because Placements drop clusters: %w", kind.Kind, err)
	}
	return nil
}

// SameSpec reports whether two copies of an object have the same spec.
func SameSpec(live *metav1.PartialObjectMetadata, cached client.Object) bool {
	return live.UID == cached.GetUID() && live.Generation == cached.GetGeneration() &&
		live.DeletionTimestamp.Equal(cached.GetDeletionTimestamp())
}
