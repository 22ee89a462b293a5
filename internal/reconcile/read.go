package reconcile

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// KindGone reports whether a request failed because the API server does not serve the kind. That an object or its
// namespace does not exist is another matter.
func KindGone(err error) bool {
	return apierrors.IsNotFound(err) && apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse)
}

// ObjectGone reports whether the API server says that an object does not exist. That it does not serve the kind, or
// that a proxy has no such page, says nothing about the object.
func ObjectGone(err error) bool { return apierrors.IsNotFound(err) && !KindGone(err) }

// Get reads one object into the given one and returns it; nil when it does not exist. It is an error if the API server
// does not serve the kind.
func Get[T client.Object](ctx context.Context, from client.Reader, key types.NamespacedName, into T) (T, error) {
	return read(into, key, from.Get(ctx, key, into))
}

// Peek is Get without a copy: what a cache returns is its own, and must not be changed.
func Peek[T client.Object](ctx context.Context, from client.Reader, key types.NamespacedName, into T) (T, error) {
	return read(into, key, from.Get(ctx, key, into, client.UnsafeDisableDeepCopy))
}

// read returns what was read, with the answer of the reader.
func read[T client.Object](into T, key types.NamespacedName, err error) (T, error) {
	var none T
	switch {
	case ObjectGone(err):
		return none, nil
	case err != nil:
		into.SetNamespace(key.Namespace)
		into.SetName(key.Name)
		return none, fmt.Errorf("reading %s: %w", Describe(into), err)
	}
	return into, nil
}

// GetListed reads one object by a list, for programs that may list a kind and get none of it; nil when it does not
// exist. list is an empty list of the kind.
func GetListed[T client.Object](
	ctx context.Context, from client.Reader, key types.NamespacedName, list client.ObjectList,
) (T, error) {
	var none T
	one := client.MatchingFields{metav1.ObjectNameField: key.Name}
	if err := from.List(ctx, list, client.InNamespace(key.Namespace), one); err != nil {
		return none, fmt.Errorf("reading %T %s: %w", none, key, err)
	}
	items, err := meta.ExtractList(list)
	if err != nil {
		return none, fmt.Errorf("reading %T %s: %w", none, key, err)
	}
	for _, item := range items {
		if object, is := item.(T); is && object.GetName() == key.Name {
			return object, nil
		}
	}
	return none, nil
}

// Namespace returns an empty namespace, of which only metadata is read or watched.
func Namespace() *metav1.PartialObjectMetadata {
	namespace := &metav1.PartialObjectMetadata{}
	namespace.SetGroupVersionKind(schema.GroupVersionKind{Version: "v1", Kind: "Namespace"})
	return namespace
}

// Request returns the one request for an object; its namespace is empty for a cluster-scoped one.
func Request(namespace, name string) []ctrl.Request {
	return []ctrl.Request{{NamespacedName: types.NamespacedName{Namespace: namespace, Name: name}}}
}

// Pointers returns a pointer to each item of a list.
func Pointers[T any](items []T) []*T {
	all := make([]*T, len(items))
	for i := range items {
		all[i] = &items[i]
	}
	return all
}

// FieldIndex is one field index of a cache.
type FieldIndex struct {
	// Object is of the kind that is indexed.
	Object client.Object
	// Field is the name of the index, as client.MatchingFields uses it.
	Field string
	// Keys returns the values under which an object is found.
	Keys client.IndexerFunc
	// Everywhere is for an index by which no list in one namespace finds anything: every list is of all namespaces. The
	// second entry of each object and key, with its namespace, is left out. With one object in it, it takes 300 bytes.
	Everywhere bool
}

// AddIndexes adds field indexes to a cache; it must be called before the cache starts.
func AddIndexes(ctx context.Context, indexer client.FieldIndexer, indexes ...FieldIndex) error {
	for _, index := range indexes {
		add := indexer.IndexField
		if informers, isCache := indexer.(cache.Informers); isCache && index.Everywhere {
			add = everywhere(informers)
		}
		if err := add(ctx, index.Object, index.Field, index.Keys); err != nil {
			return fmt.Errorf("indexing %s by %s: %w", kindOf(index.Object), index.Field, err)
		}
	}
	return nil
}

// everywhere returns a function like IndexField that adds only the entries for lists of all namespaces, with the names
// that the reader of the cache looks for.
func everywhere(informers cache.Informers) func(context.Context, client.Object, string, client.IndexerFunc) error {
	return func(ctx context.Context, of client.Object, field string, keys client.IndexerFunc) error {
		informer, err := informers.GetInformer(ctx, of, cache.BlockUntilSynced(false))
		if err != nil {
			return fmt.Errorf("finding the informer: %w", err)
		}
		return informer.AddIndexers(toolscache.Indexers{"field:" + field: func(object any) ([]string, error) {
			o, isObject := object.(client.Object)
			if !isObject {
				return nil, fmt.Errorf("indexing by %s: a %T is no object", field, object)
			}
			values := keys(o)
			entries := make([]string, len(values))
			for i, value := range values {
				entries[i] = "__all_namespaces/" + value
			}
			return entries, nil
		}})
	}
}

// Pages lists objects from an API server, as many at a time as a client.Limit says. Where others may have made any
// number of large objects, it keeps a list from taking all memory. It ends with the first error. Where that takes so
// long that the API server has forgotten the state of the first page, the other pages are of a later one.
func Pages[L client.ObjectList](
	ctx context.Context, c client.Reader, newPage func() L, in ...client.ListOption,
) iter.Seq2[L, error] {
	return func(yield func(L, error) bool) {
		for more, first := "", true; first || more != ""; first = false {
			page := newPage()
			err := c.List(ctx, page, slices.Concat(in, []client.ListOption{client.Continue(more)})...)
			if next := nextAfterExpiry(err); next != "" && next != more {
				more = next
				continue
			}
			if !yield(page, err) || err != nil {
				return
			}
			more = page.GetContinue()
		}
	}
}

// nextAfterExpiry returns where to go on after an error that the list is too old to be continued; empty for any other.
func nextAfterExpiry(err error) string {
	var status apierrors.APIStatus
	if !apierrors.IsResourceExpired(err) || !errors.As(err, &status) {
		return ""
	}
	return status.Status().Continue
}
