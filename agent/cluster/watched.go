package cluster

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

const (
	// firstPause and lastPause bound the pause after a watch that failed; it doubles in between.
	firstPause, lastPause = time.Second, 30 * time.Second
	// refusedPause is the longest pause after an answer that does not change by itself: not allowed, not served.
	refusedPause = 5 * time.Minute
	// endedPause is the pause after a watch that ended as watches do.
	endedPause = 100 * time.Millisecond
)

// watched knows the objects of one resource of the spoke as they are now, and of each only what keep makes of it. It
// holds up nobody: until the first answer, and where the agent may not watch, its objects are unknown.
type watched[T comparable] struct {
	// name says what is watched, for the log.
	name string
	// selector restricts what is watched; nil is everything.
	selector func(*metav1.ListOptions)
	// keep says what is remembered of an object. One with an error is left out, and the log says why.
	keep func(*unstructured.Unstructured) (T, error)
	// changed is called after every change, and must not block.
	changed func()

	mu      sync.Mutex
	items   map[string]T
	known   bool
	refused bool
}

// list returns what is kept, ordered by name, and whether it is known at all.
func (w *watched[T]) list() ([]T, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	items := make([]T, 0, len(w.items))
	for _, name := range slices.Sorted(maps.Keys(w.items)) {
		items = append(items, w.items[name])
	}
	return items, w.known
}

// isRefused reports whether the API server does not let the agent watch.
func (w *watched[T]) isRefused() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.refused
}

// set replaces everything that is kept.
func (w *watched[T]) set(items map[string]T, known, refused bool) {
	w.mu.Lock()
	same := w.known == known && w.refused == refused && maps.Equal(w.items, items)
	w.items, w.known, w.refused = items, known, refused
	w.mu.Unlock()
	if !same {
		w.changed()
	}
}

// follow lists and watches until ctx ends.
func (w *watched[T]) follow(ctx context.Context, client dynamic.Interface, resource dynamic.ResourceInterface) {
	lists := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			w.restrict(&options)
			return resource.List(ctx, options)
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			w.restrict(&options)
			return resource.Watch(ctx, options)
		},
	}
	reflector := cache.NewReflectorWithOptions(cache.ToListWatcherWithWatchListSemantics(lists, client),
		&unstructured.Unstructured{}, &shelf[T]{watched: w, ctx: ctx},
		cache.ReflectorOptions{Name: "agent.cluster", TypeDescription: w.name})
	pause := firstPause
	for ctx.Err() == nil {
		err := reflector.ListAndWatchWithContext(ctx)
		if ctx.Err() != nil {
			return
		}
		longest := w.judge(ctx, err)
		if err == nil {
			pause = firstPause
			pauseFor(ctx, endedPause)
			continue
		}
		pause = min(pause, longest)
		pauseFor(ctx, pause)
		pause *= 2
	}
}

// restrict puts the selector into a request.
func (w *watched[T]) restrict(options *metav1.ListOptions) {
	if w.selector != nil {
		w.selector(options)
	}
}

// judge draws the conclusions from how a watch ended, and returns the longest pause before the next.
func (w *watched[T]) judge(ctx context.Context, err error) time.Duration {
	logger := log.FromContext(ctx).WithValues("watch", w.name)
	switch {
	case apierrors.IsNotFound(err):
		// What is not served has no objects.
		w.set(nil, true, false)
		return refusedPause
	case apierrors.IsForbidden(err):
		if !w.isRefused() {
			logger.Info("the managed cluster does not let the agent watch; grant list and watch", "error", err.Error())
		}
		w.set(nil, false, true)
		return refusedPause
	case err != nil:
		logger.V(1).Info("a watch failed, what it saw last still counts", "error", err.Error())
	}
	return lastPause
}

// pauseFor waits for the pause or the end of ctx.
func pauseFor(ctx context.Context, pause time.Duration) {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}

// shelf is the store that a reflector fills: it keeps of the objects what watched wants.
type shelf[T comparable] struct {
	*watched[T]
	// ctx is that of the watch, for the log alone: the methods of a store have none.
	ctx context.Context //nolint:containedctx // see above
}

var _ cache.ReflectorStore = (*shelf[int])(nil)

// Add keeps an object.
func (s *shelf[T]) Add(obj any) error { return s.Update(obj) }

// Update keeps an object.
func (s *shelf[T]) Update(obj any) error {
	object, item, err := s.read(obj)
	if object == nil {
		return err
	}
	if err != nil {
		return s.Delete(obj)
	}
	s.mu.Lock()
	before, had := s.items[object.GetName()]
	if s.items == nil {
		s.items = map[string]T{}
	}
	s.items[object.GetName()] = item
	s.mu.Unlock()
	if !had || before != item {
		s.changed()
	}
	return nil
}

// Delete forgets an object.
func (s *shelf[T]) Delete(obj any) error {
	object, ok := obj.(*unstructured.Unstructured)
	if !ok {
		return fmt.Errorf("watching %s: got a %T", s.name, obj)
	}
	s.mu.Lock()
	_, had := s.items[object.GetName()]
	delete(s.items, object.GetName())
	s.mu.Unlock()
	if had {
		s.changed()
	}
	return nil
}

// Replace keeps exactly these objects.
func (s *shelf[T]) Replace(list []any, _ string) error {
	items := make(map[string]T, len(list))
	for _, obj := range list {
		object, item, err := s.read(obj)
		if object == nil {
			return err
		}
		if err == nil {
			items[object.GetName()] = item
		}
	}
	s.set(items, true, false)
	return nil
}

// Resync has nothing to do.
func (s *shelf[T]) Resync() error { return nil }

// read returns the object and what is kept of it. Without an object the error is not about what it says.
func (s *shelf[T]) read(obj any) (*unstructured.Unstructured, T, error) {
	object, ok := obj.(*unstructured.Unstructured)
	if !ok {
		var none T
		return nil, none, fmt.Errorf("watching %s: got a %T", s.name, obj)
	}
	item, err := s.keep(object)
	if err != nil {
		log.FromContext(s.ctx).Info("left out", "watch", s.name, "name", object.GetName(), "reason", err.Error())
	}
	return object, item, err
}
