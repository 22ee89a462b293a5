package watch

import (
	"context"
	"maps"
	"math"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/metadata"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/spokelet/spokelet/agent/work/manifest"
	"github.com/spokelet/spokelet/internal/reconcile"
	kit "github.com/spokelet/spokelet/internal/watch"
)

// refusedAdvice is logged once for each watch that the API server refuses.
const refusedAdvice = "the API server refuses a watch, so its objects are only read every few minutes; grant list and" +
	" watch to have them repaired at once"

// wideAdvice is logged once for each wide watch that the API server refuses.
const wideAdvice = "the API server refuses to have a resource watched in all namespaces, so it is watched in as many" +
	" of them as the agent may have watches; grant list and watch for all, or allow more watches"

// pageSize is the number of objects in a page of a list of a wide watch.
const pageSize = 500

// Watcher keeps one metadata-only watch for each resource and namespace that the store wants, or where those are too
// many, for a resource in all namespaces, and hands its events to the store. It never blocks a pass: until a watch has
// started, the store knows only what the requests of the pass returned.
type Watcher struct {
	client metadata.Interface
	store  *Store
	// limit is the largest number of watches; relist is the time after which a watch lists again.
	limit  int
	relist time.Duration
	// changed signals that the set of wanted watches changed.
	changed kit.Trigger
	// exceeded is set while there are objects that no watch covers for the limit; only run uses it.
	exceeded bool

	// mu guards fares, which has how each wide watch fares that runs. It is held while a list is handed to the store, so
	// that no key is marked as beyond the limit of which a wide watch has just listed the objects.
	mu    sync.Mutex
	fares map[schema.GroupVersionResource]fare
}

// NewWatcher returns a Store with its Watcher, which watches nothing until Run. wake is called for each owner of an
// object that changed; it may not block.
func NewWatcher(client metadata.Interface, limit int, relist time.Duration, wake func(Owner)) (*Store, *Watcher) {
	w := &Watcher{
		client: client, limit: limit, relist: relist, changed: kit.NewTrigger(),
		fares: map[schema.GroupVersionResource]fare{},
	}
	w.store = NewStore(wake, w.changed.Fire)
	return w.store, w
}

// Run starts and stops watches as the store wants them until the context ends, and returns when all have ended.
func (w *Watcher) Run(ctx context.Context) {
	set := kit.Set[scope]{Wanted: w.wanted, Start: w.start, Changed: w.changed}
	set.Run(ctx)
}

// wanted returns the watches to have. The store polls the objects of those beyond the limit instead.
func (w *Watcher) wanted(ctx context.Context, running func(scope) bool) []scope {
	w.mu.Lock()
	defer w.mu.Unlock()
	maps.DeleteFunc(w.fares, func(of schema.GroupVersionResource, _ fare) bool { return !running(everywhere(of)) })
	chosen, beyond := choose(w.store.wanted(), running, w.fares, w.limit)
	for _, key := range beyond {
		w.store.refuse(key, beyondLimit)
	}
	if len(beyond) > 0 && !w.exceeded {
		log.FromContext(ctx).Info(beyondLimit+", so the objects of some are only read every few minutes; allow more"+
			" to have them repaired at once", "allowed", w.limit, "beyond", len(beyond), "such as", beyond[0].String())
	}
	w.exceeded = len(beyond) > 0
	return chosen
}

// start returns the function that runs one watch.
func (w *Watcher) start(of scope) func(context.Context) {
	one := w.watchOf(of)
	return one.Run
}

// watchOf returns one watch.
func (w *Watcher) watchOf(of scope) *kit.Watch[*metav1.PartialObjectMetadata] {
	resource := w.client.Resource(of.Resource).Namespace(of.Namespace)
	h := &handler{Watcher: w, of: of, mark: math.MaxUint64}
	one := &kit.Watch[*metav1.PartialObjectMetadata]{
		Name: "agent.work", Description: of.String(), Source: kit.From(w.client, resource.List, resource.Watch),
		Handler: h, Relist: reconcile.Spread(w.relist, relistSpread, of.String()),
		Refused: kit.Refused, Advice: refusedAdvice,
		Ended: func(err error) {
			if manifest.KindGone(err) {
				w.store.doubt(of) // the kind may be gone with its objects, or served in another version
			}
			if kit.Refused(err) {
				w.refuse(of, err)
			}
		},
		Silent: func(err error) { w.refuse(of, err) },
	}
	if of.wide {
		one.Advice, one.Sift, one.Source.PageSize = wideAdvice, h.sift, pageSize
	}
	return one
}

// refuse takes that a watch shows nothing. Narrow watches take the place of a wide one, unless its kind is gone.
func (w *Watcher) refuse(of scope, err error) {
	if of.wide && !manifest.KindGone(err) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.fare(of, fails)
		return
	}
	for _, key := range w.store.covered(of) {
		w.store.refuse(key, err.Error())
	}
}

// fare sets how a wide watch fares.
func (w *Watcher) fare(of scope, now fare) {
	if of.wide && w.fares[of.Resource] != now {
		w.fares[of.Resource] = now
		w.changed.Fire()
	}
}

// handler hands the events of one watch to the store.
type handler struct {
	*Watcher
	of scope
	// version is that of the last list, mark the count of the store when the present one began to arrive.
	version string
	mark    uint64
}

// sift keeps of a list what is claimed: a resource may have many more objects in all namespaces.
func (h *handler) sift() func(*metav1.PartialObjectMetadata) bool {
	h.mark = h.store.mark()
	return func(object *metav1.PartialObjectMetadata) bool { return h.store.has(h.id(object)) }
}

// Replace implements the Handler of internal/watch.
func (h *handler) Replace(ctx context.Context, objects []*metav1.PartialObjectMetadata, version string) {
	present := make(map[manifest.ID]Event, len(objects))
	for _, object := range objects {
		present[h.id(object)] = EventOf(object)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.store.replace(h.of, list{objects: present, version: version, before: h.version, mark: h.mark}) {
		log.FromContext(ctx).Info("the API server went back to an earlier state, as after a restore from a backup;"+
			" the objects are read again", "watch", h.of.String())
	}
	h.version = version
	h.fare(h.of, works)
}

// Update implements the Handler of internal/watch.
func (h *handler) Update(_ context.Context, object *metav1.PartialObjectMetadata) {
	h.store.Observe(h.id(object), EventOf(object))
}

// Delete implements the Handler of internal/watch.
func (h *handler) Delete(_ context.Context, object *metav1.PartialObjectMetadata) {
	h.store.Observe(h.id(object), Event{Deleted: true, Version: object.ResourceVersion})
}

// id returns the ID of an object of the watch.
func (h *handler) id(object *metav1.PartialObjectMetadata) manifest.ID {
	return manifest.ID{
		Group: h.of.Resource.Group, Resource: h.of.Resource.Resource,
		Namespace: object.Namespace, Name: object.Name,
	}
}
