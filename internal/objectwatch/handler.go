package objectwatch

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	apiwatch "k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"

	"github.com/spokelet/spokelet/internal/watch"
)

// handler receives the events and the answers of one watch.
type handler struct {
	watcher *Watcher
	ref     Ref
	run     int
}

// update changes the entry of the watch, unless the watch was stopped, and reports if the state changed.
func (h *handler) update(change func(*entry)) {
	w := h.watcher
	w.mu.Lock()
	e := w.entries[h.ref]
	if e == nil || e.run != h.run {
		w.mu.Unlock()
		return
	}
	before, synced := w.state(h.ref), e.synced
	change(e)
	h.followRefusal(e, e.synced && !synced)
	after := w.state(h.ref)
	w.mu.Unlock()
	if !before.same(after) {
		w.report(h.ref)
	}
}

// Replace implements watch.Handler. A list may have come as the first events of a watch, so that the verb list is not
// needed. The name is compared because some API servers ignore field selectors.
func (h *handler) Replace(_ context.Context, objects []*unstructured.Unstructured, _ string) {
	var found *unstructured.Unstructured
	for _, object := range objects {
		if object.GetName() == h.ref.Name {
			found = object
		}
	}
	h.update(func(e *entry) { e.list, e.synced, e.object = nil, true, found })
}

// Update implements watch.Handler.
func (h *handler) Update(_ context.Context, object *unstructured.Unstructured) {
	if object.GetName() == h.ref.Name {
		h.set(object)
	}
}

// Delete implements watch.Handler.
func (h *handler) Delete(_ context.Context, object *unstructured.Unstructured) {
	if object.GetName() == h.ref.Name {
		h.set(nil)
	}
}

// set records the object; nil when it is absent.
func (h *handler) set(object *unstructured.Unstructured) {
	h.update(func(e *entry) { e.synced, e.object = true, object })
}

// source lists and watches the object, and records whether each request succeeded.
func (h *handler) source(client dynamic.Interface, objects dynamic.ResourceInterface) watch.Source {
	source := watch.From(client, objects.List, objects.Watch)
	source.FieldSelector = fields.OneTermEqualSelector(metav1.ObjectNameField, h.ref.Name).String()
	list, follow := source.List, source.Watch
	source.List = func(ctx context.Context, options metav1.ListOptions) (found runtime.Object, err error) {
		if err = h.acquire(ctx); err == nil {
			defer h.release()
			found, err = list(ctx, options)
		}
		h.answered(ctx, err, func(e *entry) *error { return &e.list })
		return found, err
	}
	source.Watch = func(ctx context.Context, options metav1.ListOptions) (events apiwatch.Interface, err error) {
		if err = h.acquire(ctx); err == nil {
			defer h.release()
			events, err = follow(ctx, options)
		}
		h.answered(ctx, err, func(e *entry) *error { return &e.watch })
		return events, err
	}
	return source
}

// acquire waits for one of the slots of requests.
func (h *handler) acquire(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return ctx.Err() // the caller compares it
	case h.watcher.slots <- struct{}{}:
		return nil
	}
}

func (h *handler) release() { <-h.watcher.slots }

// answered records the result of a request. An error that ctx caused is none of the API server.
func (h *handler) answered(ctx context.Context, err error, of func(*entry) *error) {
	if err != nil && ctx.Err() != nil {
		return
	}
	h.update(func(e *entry) { *of(e) = err })
}

// followRefusal records since when the watch is forbidden. When one is permitted, those of the same resource that are
// not are tried again, unless that was a moment ago. first is set when the object was read for the first time.
func (h *handler) followRefusal(e *entry, first bool) {
	w := h.watcher
	others := w.kinds[h.ref.GroupResource()].forbidden
	_, was := others[h.ref]
	if apierrors.IsForbidden(e.cause()) {
		if !was {
			others[h.ref] = w.clock.Now()
		}
		return
	}
	delete(others, h.ref)
	if !was && !first {
		return
	}
	for ref, since := range others {
		if w.clock.Since(since) > retryAfter {
			w.entries[ref].restart = true
			w.settleLater(ref)
		}
	}
}

// ended looks the kind up again when the API server does not serve it as it did.
func (h *handler) ended(err error) {
	if kindGone(err) {
		h.watcher.doubt(h.ref.GroupResource())
	}
}
