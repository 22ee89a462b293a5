package watch

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// paged is a client that does not stream lists.
type paged struct{}

// IsWatchListSemanticsUnSupported tells the reflector to list before it watches.
func (paged) IsWatchListSemanticsUnSupported() bool { return true }

// sifted returns the Source, which gathers only what Sift keeps.
func (w *Watch[T]) sifted() Source {
	if w.Sift == nil {
		return w.Source
	}
	source := w.Source
	source.Client = paged{}
	var mu sync.Mutex
	var keep func(T) bool // of the present list
	source.List = func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
		options.ResourceVersion = "" // a list from the cache of the API server has one page
		page, err := w.Source.List(ctx, options)
		if err != nil || IsForVersion(options) {
			return page, err
		}
		mu.Lock()
		defer mu.Unlock()
		if err := ctx.Err(); err != nil {
			return nil, err // nobody waits for this list any more, and the next one may have begun
		}
		if options.Continue == "" {
			keep = w.Sift()
		}
		objects, err := meta.ExtractListWithAlloc(page)
		if err != nil {
			return nil, fmt.Errorf("reading a list of %s: %w", w.Description, err)
		}
		objects = slices.DeleteFunc(objects, func(object runtime.Object) bool {
			typed, ok := object.(T)
			return ok && !keep(typed)
		})
		if err := meta.SetList(page, objects); err != nil {
			return nil, fmt.Errorf("sifting a list of %s: %w", w.Description, err)
		}
		return page, nil
	}
	return source
}
