package work

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/metadata"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/spokelet/spokelet/internal/reconcile"
	"github.com/spokelet/spokelet/internal/watch"
)

// refusedAdvice is logged once for each watch that the API server refuses.
const refusedAdvice = "the API server refuses a watch, so its objects are only read every few minutes; grant list and" +
	" watch to have them repaired at once"

// watcher keeps one metadata-only watch for each resource and namespace that the ledger wants, up to a limit, and
// hands its events to the ledger. It never blocks a pass: until a watch has started, the ledger knows only what the
// requests of the pass returned.
type watcher struct {
	client metadata.Interface
	ledger *ledger
	// limit is the largest number of watches; relist is the time after which a watch lists again.
	limit  int
	relist time.Duration
	// moved signals that the set of wanted watches changed.
	moved watch.Trigger
	// exceeded is set while more watches are wanted than limit; only run uses it.
	exceeded bool
}

// newWatcher returns a watcher that does nothing until run.
func newWatcher(client metadata.Interface, limit int, relist time.Duration) *watcher {
	return &watcher{client: client, limit: limit, relist: relist, moved: watch.NewTrigger()}
}

// run starts and stops watches as the ledger wants them until the context ends, and returns when all have ended.
func (w *watcher) run(ctx context.Context) {
	set := watch.Set[watchKey]{Wanted: w.wanted, Start: w.start, Changed: w.moved}
	set.Run(ctx)
}

// wanted returns the watches to have. The ledger polls the objects of those beyond the limit instead.
func (w *watcher) wanted(ctx context.Context, running func(watchKey) bool) []watchKey {
	chosen, beyond := choose(w.ledger.watches(), running, w.limit)
	for _, key := range beyond {
		w.ledger.refuse(key, beyondBound)
	}
	if len(beyond) > 0 && !w.exceeded {
		log.FromContext(ctx).Info(beyondBound+", so the objects of some are only read every few minutes; allow more"+
			" to have them repaired at once", "allowed", w.limit, "beyond", len(beyond), "such as", beyond[0].String())
	}
	w.exceeded = len(beyond) > 0
	return chosen
}

// start returns the watch of one resource in one namespace.
func (w *watcher) start(key watchKey) func(context.Context) {
	resource := w.client.Resource(key.resource).Namespace(key.namespace)
	return func(ctx context.Context) {
		one := watch.Watch[*metav1.PartialObjectMetadata]{
			Name: "agent.work", Description: key.String(), Source: watch.From(w.client, resource.List, resource.Watch),
			Handler: &sightings{ledger: w.ledger, key: key}, Relist: reconcile.Spread(w.relist, relistSpread, key.String()),
			Refused: watch.Refused, Advice: refusedAdvice,
			Ended: func(err error) {
				if kindGone(err) {
					w.ledger.doubt(key) // the kind may be gone with its objects, or served in another version
				}
				if watch.Refused(err) {
					w.ledger.refuse(key, err.Error())
				}
			},
		}
		one.Run(ctx)
	}
}

// String names the watch for a person.
func (k watchKey) String() string {
	name := k.resource.GroupResource().String()
	if k.namespace == "" {
		return name
	}
	return name + " in " + k.namespace
}

// sightings hands the events of one watch to the ledger.
type sightings struct {
	ledger *ledger
	key    watchKey
}

// Replace implements watch.Handler.
func (s *sightings) Replace(ctx context.Context, objects []*metav1.PartialObjectMetadata, version string) {
	present := make(map[identity]sighting, len(objects))
	for _, object := range objects {
		present[s.identity(object)] = sightingOf(object)
	}
	if s.ledger.listed(s.key, present, version) {
		log.FromContext(ctx).Info("the API server went back to an earlier state, as after a restore from a backup;"+
			" the objects are read again", "watch", s.key.String())
	}
}

// Update implements watch.Handler.
func (s *sightings) Update(_ context.Context, object *metav1.PartialObjectMetadata) {
	s.ledger.see(s.identity(object), sightingOf(object))
}

// Delete implements watch.Handler.
func (s *sightings) Delete(_ context.Context, object *metav1.PartialObjectMetadata) {
	s.ledger.see(s.identity(object), sighting{gone: true, version: object.ResourceVersion})
}

// identity returns the identity of an object of the watch.
func (s *sightings) identity(object *metav1.PartialObjectMetadata) identity {
	return identity{
		Group: s.key.resource.Group, Resource: s.key.resource.Resource,
		Namespace: object.Namespace, Name: object.Name,
	}
}

// sightingOf returns what the ledger keeps of an object.
func sightingOf(object metav1.Object) sighting {
	return sighting{
		version: object.GetResourceVersion(), uid: object.GetUID(),
		generation: object.GetGeneration(), meta: fingerprint(object),
	}
}
