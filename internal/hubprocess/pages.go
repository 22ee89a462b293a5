package hubprocess

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"

	"github.com/spokelet/spokelet/internal/watch"
)

// listPage is the number of objects that a cache decodes at once. With the largest objects of a kind that anybody may
// create, 20 KiB each, a page takes 2 MiB.
const listPage = 100

// configPage is the number of configurations that are decoded at once: one may take 88 MiB before it is packed.
const configPage = 4

// NewInformer is a constructor of the informers of a cache.
type NewInformer = func(cache.ListerWatcher, runtime.Object, time.Duration, cache.Indexers) cache.SharedIndexInformer

// InPages returns a constructor of informers that never hold all objects of a kind before they are trimmed. An API
// server that streams a first list sends one object after the other. For all others, a list is read in pages, and each
// page is trimmed before the next is read: by default client-go asks for a list from the memory of the API server,
// which ignores the size of a page.
func InPages(next NewInformer) NewInformer {
	return func(
		from cache.ListerWatcher, example runtime.Object, resync time.Duration, indexers cache.Indexers,
	) cache.SharedIndexInformer {
		p := &pages{from: cache.ToListerWatcherWithContext(from), size: listPage}
		if _, is := example.(runtime.Unstructured); is {
			p.size = configPage
		}
		return trimming{next(&cache.ListWatch{
			ListWithContextFunc: p.list, WatchFuncWithContext: p.from.WatchWithContext,
		}, example, resync, indexers), p}
	}
}

// trimming is an informer that trims pages with its own transformation.
type trimming struct {
	cache.SharedIndexInformer
	pages *pages
}

// SetTransform implements cache.SharedInformer.
func (t trimming) SetTransform(trim cache.TransformFunc) error {
	if err := t.SharedIndexInformer.SetTransform(trim); err != nil {
		return fmt.Errorf("setting the transformation of a cache: %w", err)
	}
	t.pages.trim.Store(&trim)
	return nil
}

// pages reads lists in pages.
type pages struct {
	from cache.ListerWatcherWithContext
	size int64
	trim atomic.Pointer[cache.TransformFunc]
}

// list returns all objects, each trimmed. It asks for the present state, of which the API server gives pages. A list
// for the version of the state stays as it is.
func (p *pages) list(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
	if watch.IsForVersion(options) {
		return p.from.ListWithContext(ctx, options) // see below
	}
	options.ResourceVersion, options.ResourceVersionMatch = "", ""
	options.Limit, options.Continue = p.size, ""
	var all []runtime.Object
	for {
		page, err := p.from.ListWithContext(ctx, options)
		if err != nil {
			return nil, err // the reflector looks for the kind of the error
		}
		if all, err = p.take(all, page); err != nil {
			return nil, err
		}
		about, err := meta.ListAccessor(page)
		if err != nil {
			return nil, fmt.Errorf("reading a page of a list: %w", err)
		}
		if options.Continue = about.GetContinue(); options.Continue == "" {
			about.SetRemainingItemCount(nil)
			if err := meta.SetList(page, all); err != nil {
				return nil, fmt.Errorf("joining the pages of a list: %w", err)
			}
			return page, nil
		}
	}
}

// take appends the trimmed objects of a page.
func (p *pages) take(all []runtime.Object, page runtime.Object) ([]runtime.Object, error) {
	trim := p.trim.Load()
	// With a copy of each object, the rest of the page can be freed.
	err := meta.EachListItemWithAlloc(page, func(o runtime.Object) error {
		if trim != nil && *trim != nil {
			trimmed, err := (*trim)(o)
			if err != nil {
				return fmt.Errorf("trimming an object: %w", err)
			}
			if kept, ok := trimmed.(runtime.Object); ok {
				o = kept
			}
		}
		all = append(all, o)
		return nil
	})
	return all, err // it is our own
}
