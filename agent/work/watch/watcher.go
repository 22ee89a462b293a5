package watch

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/metadata"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/spokelet/spokelet/agent/work/manifest"
	"github.com/spokelet/spokelet/internal/reconcile"
	kit "github.com/spokelet/spokelet/internal/watch"
)

// refusedAdvice is logged once for each watch that the API server refuses.
const refusedAdvice = "the API server refuses a watch, so its objects are only read every few minutes; grant list and" +
	" watch to have them repaired at once"

// Watcher keeps one metadata-only watch for each resource and namespace that the store wants, up to a limit, and
// hands its events to the store. It never blocks a pass: until a watch has started, the store knows only what the
// requests of the pass returned.
type Watcher struct {
	client metadata.Interface
	store  *Store
	// limit is the largest number of watches; relist is the time after which a watch lists again.
	limit  int
	relist time.Duration
	// changed signals that the set of wanted watches changed.
	changed kit.Trigger
	// exceeded is set while more watches are wanted than limit; only run uses it.
	exceeded bool
}

// NewWatcher returns a Store with its Watcher, which watches nothing until Run. wake is called for each owner of an
// object that changed; it may not block.
func NewWatcher(client metadata.Interface, limit int, relist time.Duration, wake func(Owner)) (*Store, *Watcher) {
	w := &Watcher{client: client, limit: limit, relist: relist, changed: kit.NewTrigger()}
	w.store = NewStore(wake, w.changed.Fire)
	return w.store, w
}

// Run starts and stops watches as the store wants them until the context ends, and returns when all have ended.
func (w *Watcher) Run(ctx context.Context) {
	set := kit.Set[Key]{Wanted: w.wanted, Start: w.start, Changed: w.changed}
	set.Run(ctx)
}

// wanted returns the watches to have. The store polls the objects of those beyond the limit instead.
func (w *Watcher) wanted(ctx context.Context, running func(Key) bool) []Key {
	chosen, beyond := choose(w.store.wanted(), running, w.limit)
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

// start returns the function that runs the watch of one resource in one namespace.
func (w *Watcher) start(key Key) func(context.Context) {
	one := w.watchOf(key)
	return one.Run
}

// watchOf returns the watch of one resource in one namespace.
func (w *Watcher) watchOf(key Key) *kit.Watch[*metav1.PartialObjectMetadata] {
	resource := w.client.Resource(key.Resource).Namespace(key.Namespace)
	return &kit.Watch[*metav1.PartialObjectMetadata]{
		Name: "agent.work", Description: key.String(), Source: kit.From(w.client, resource.List, resource.Watch),
		Handler: &handler{store: w.store, key: key}, Relist: reconcile.Spread(w.relist, relistSpread, key.String()),
		Refused: kit.Refused, Advice: refusedAdvice,
		Ended: func(err error) {
			if manifest.KindGone(err) {
				w.store.doubt(key) // the kind may be gone with its objects, or served in another version
			}
			if kit.Refused(err) {
				w.store.refuse(key, err.Error())
			}
		},
		Silent: func(err error) { w.store.refuse(key, err.Error()) },
	}
}

// handler hands the events of one watch to the store.
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
		log.FromContext(ctx).Info("the API server went back to an earlier state, as after a restore from a backup;"+
			" the objects are read again", "watch", s.key.String())
	}
}

// Update implements the Handler of internal/watch.
func (s *handler) Update(_ context.Context, object *metav1.PartialObjectMetadata) {
	s.store.Observe(s.id(object), EventOf(object))
}

// Delete implements the Handler of internal/watch.
func (s *handler) Delete(_ context.Context, object *metav1.PartialObjectMetadata) {
	s.store.Observe(s.id(object), Event{Deleted: true, Version: object.ResourceVersion})
}

// id returns the ID of an object of the watch.
func (s *handler) id(object *metav1.PartialObjectMetadata) manifest.ID {
	return manifest.ID{
		Group: s.key.Resource.Group, Resource: s.key.Resource.Resource,
		Namespace: object.Namespace, Name: object.Name,
	}
}
