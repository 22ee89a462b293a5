package watch

import (
	"context"
	"slices"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/metadata"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/spokelet/spokelet/agent/work/manifest"
	"github.com/spokelet/spokelet/internal/pause"
	"github.com/spokelet/spokelet/internal/reconcile"
	kit "github.com/spokelet/spokelet/internal/watch"
)

// refusedAdvice is logged once for each watch that the API server refuses.
const refusedAdvice = "the API server refuses a watch, so its objects are only read every few minutes; grant list and" +
	" watch to have them repaired at once"

// Watcher keeps one metadata-only watch for each resource and namespace that the store wants, up to a limit, and
// hands its events to the store. Beyond the limit, one wide watch of a resource in all namespaces shows the changes of
// the keys that have none. It never blocks a pass: until a watch has started, the store knows only what the requests of
// the pass returned.
type Watcher struct {
	client metadata.Interface
	store  *Store
	// limit is the largest number of watches; relist is the time after which a watch lists again.
	limit  int
	relist time.Duration
	clock  clock.WithDelayedExecution
	// changed signals that the set of wanted watches changed.
	changed kit.Trigger
	// exceeded is set while more watches are wanted than limit; only run uses it.
	exceeded bool
}

// Bounds are those of a Watcher.
type Bounds struct {
	// Watches is the largest number of watches, and Relist the time after which one lists again.
	Watches int
	Relist  time.Duration
}

// NewWatcher returns a Store with its Watcher, which watches nothing until Run. wake is called for each owner of an
// object that changed; it may not block.
func NewWatcher(client metadata.Interface, b Bounds, wake func(Owner)) (*Store, *Watcher) {
	w := &Watcher{
		client: client, limit: b.Watches, relist: b.Relist, clock: clock.RealClock{}, changed: kit.NewTrigger(),
	}
	w.store = NewStore(wake, w.changed.Fire)
	return w.store, w
}

// Run starts and stops watches as the store wants them until the context ends, and returns when all have ended.
func (w *Watcher) Run(ctx context.Context) {
	set := kit.Set[scope]{Wanted: w.wanted, Start: w.start, Changed: w.changed}
	set.Run(ctx)
}

// wanted returns the watches to have, and tells the store.
func (w *Watcher) wanted(ctx context.Context, running func(scope) bool) []scope {
	now := w.store.situation(w.clock.Now())
	now.running = running
	chosen, covers := choose(w.store.wanted(), now, w.limit)
	w.store.assign(chosen, covers)
	var beyond []string
	for key, c := range covers {
		if c == uncovered {
			beyond = append(beyond, key.String())
		}
	}
	if len(beyond) > 0 && !w.exceeded {
		log.FromContext(ctx).Info(beyondLimit+", so the objects of some are only read every few minutes; allow more"+
			" to have them repaired at once", "allowed", w.limit, "beyond", len(beyond), "such as", slices.Min(beyond))
	}
	w.exceeded = len(beyond) > 0
	return chosen
}

// start returns the function that runs a watch.
func (w *Watcher) start(one scope) func(context.Context) {
	run := w.watchOf(one)
	if one.wide {
		run = w.wideWatchOf(one)
	}
	return run.Run
}

// watchOf returns the watch of one key.
func (w *Watcher) watchOf(one scope) *kit.Watch[*metav1.PartialObjectMetadata] {
	resource := w.client.Resource(one.Resource).Namespace(one.Namespace)
	return &kit.Watch[*metav1.PartialObjectMetadata]{
		Name: "agent.work", Description: one.String(), Source: kit.From(w.client, resource.List, resource.Watch),
		Handler: &handler{store: w.store, key: one.Key}, Relist: pause.Spread(w.relist, relistSpread, one.String()),
		Refused: kit.Refused, Advice: refusedAdvice,
		Ended: func(err error) {
			if reconcile.KindGone(err) {
				w.store.doubt(one) // the kind may be gone with its objects, or served in another version
			}
			if kit.Refused(err) {
				w.store.refuse(one, err)
			}
		},
		Silent:  func(err error) { w.store.refuse(one, err) },
		Resumed: func() { w.store.resume(one) },
	}
}

// wideWatchOf returns the watch of a resource in all namespaces. Most objects there may be of others, so it lists none:
// when it begins, the owners read their objects, and from then on it shows what changes.
func (w *Watcher) wideWatchOf(one scope) *kit.Watch[*metav1.PartialObjectMetadata] {
	run := w.watchOf(one)
	wide := &wideHandler{handler: handler{store: w.store, key: one.Key}, scope: one, watcher: w}
	run.Handler = wide
	resource := w.client.Resource(one.Resource)
	run.Source = kit.From(w.client,
		func(ctx context.Context, options metav1.ListOptions) (*metav1.PartialObjectMetadataList, error) {
			seen := w.store.newest(one.Resource)
			list, err := resource.List(ctx, options)
			// The list is of the newest state, so it can only be older than what was seen before if the store went back.
			if err == nil && Older(list.ResourceVersion, seen) {
				wide.toldBack.Store(true)
				wide.wentBack(ctx)
			}
			return list, err
		}, resource.Watch)
	run.Source.EventsOnly, run.Source.Accepted = true, wide.accepted
	run.Source.WentBack = func(ctx context.Context) {
		if !wide.toldBack.Load() { // by a list since the watch was accepted last
			wide.wentBack(ctx)
		}
	}
	return run
}

// sayRestored logs that the API server was restored.
func sayRestored(ctx context.Context, one scope) {
	log.FromContext(ctx).Info("the API server went back to an earlier state, as after a restore from a backup;"+
		" the objects are read again", "watch", one.String())
}

// handler hands the events of the watch of one key to the store.
type handler struct {
	store *Store
	key   Key
}

// Replace implements the Handler of internal/watch.
func (s *handler) Replace(ctx context.Context, objects []*metav1.PartialObjectMetadata, version string) {
	present := make(map[manifest.ID]Event, len(objects))
	for _, object := range objects {
		present[s.id(object)] = EventOf(object)
	}
	if s.store.replace(s.key, present, version) {
		sayRestored(ctx, only(s.key))
	}
}

// Update implements the Handler of internal/watch.
func (s *handler) Update(_ context.Context, object *metav1.PartialObjectMetadata) {
	s.store.observeAt(s.key, s.id(object), EventOf(object))
}

// Delete implements the Handler of internal/watch.
func (s *handler) Delete(_ context.Context, object *metav1.PartialObjectMetadata) {
	s.store.observeAt(s.key, s.id(object), Event{Deleted: true, Version: object.ResourceVersion})
}

// id returns the ID of an object of the watch.
func (s *handler) id(object *metav1.PartialObjectMetadata) manifest.ID {
	return manifest.ID{
		Group: s.key.Resource.Group, Resource: s.key.Resource.Resource,
		Namespace: object.Namespace, Name: object.Name,
	}
}

// wideHandler hands the events of a wide watch to the store, those of claimed objects. It does not count versions,
// as the watch of a key does: they tell whether that one lists an earlier state.
type wideHandler struct {
	handler

	scope   scope
	watcher *Watcher
	// version is that of a list after which no watch was accepted yet, toldBack whether the last list showed that the API
	// server was restored. One goroutine at a time uses them.
	version  string
	toldBack atomic.Bool
}

// Replace keeps the version after which the watch shows every change, if the API server accepts it.
func (s *wideHandler) Replace(_ context.Context, _ []*metav1.PartialObjectMetadata, version string) {
	s.version = version
}

// Update implements the Handler of internal/watch.
func (s *wideHandler) Update(_ context.Context, object *metav1.PartialObjectMetadata) {
	if id := s.id(object); s.store.claims(id) {
		s.observe(id, EventOf(object))
	}
}

// Delete implements the Handler of internal/watch.
func (s *wideHandler) Delete(_ context.Context, object *metav1.PartialObjectMetadata) {
	s.observe(s.id(object), Event{Deleted: true, Version: object.ResourceVersion})
}

// observe hands an event to the store. The watch of a key may have shown a later one, which only versions tell: without
// an order of versions the event says no more than that something changed.
func (s *wideHandler) observe(id manifest.ID, event Event) {
	if !Older("1", event.Version) {
		event = Event{Unknown: true, Version: event.Version}
	}
	s.store.Observe(id, event)
}

// accepted tells the store that the watch shows changes. Watches are chosen again when it need not be kept any more.
func (s *wideHandler) accepted() {
	if s.store.follow(s.scope, s.version, s.watcher.clock.Now()) {
		s.watcher.clock.AfterFunc(leastWide, s.watcher.changed.Fire)
	}
	s.version = ""
	s.toldBack.Store(false)
}

// wentBack tells the store that the API server was restored.
func (s *wideHandler) wentBack(ctx context.Context) {
	sayRestored(ctx, s.scope)
	s.store.restored(s.scope.Resource)
}
