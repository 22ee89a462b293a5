package work

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/spokelet/spokelet/internal/reconcile"
)

const (
	// firstPause and lastPause bound the pause after a failure of a watch; it doubles in between.
	firstPause, lastPause = time.Second, 30 * time.Second
	// refusedPause is the longest pause of a watch that the API server refuses.
	refusedPause = 5 * time.Minute
	// endedPause is the pause after a watch that ended as watches do.
	endedPause = 100 * time.Millisecond
)

// watcher keeps one metadata-only watch for each resource and namespace that the ledger wants, up to a limit, and tells
// the ledger what it sees. It stores nothing but what the ledger keeps, and it never holds up a pass: before a watch
// has started, the requests of the pass itself are the truth.
type watcher struct {
	client metadata.Interface
	ledger *ledger
	// limit is how many watches there are at most, relist how long one is trusted before it lists anew.
	limit  int
	relist time.Duration
	clock  clock.PassiveClock
	// moved holds one signal when the set of wanted watches changed.
	moved chan struct{}
}

// newWatcher returns a watcher that does nothing until run.
func newWatcher(client metadata.Interface, limit int, relist time.Duration) *watcher {
	return &watcher{client: client, limit: limit, relist: relist, clock: clock.RealClock{}, moved: make(chan struct{}, 1)}
}

// signal says that the set of wanted watches changed; it never blocks.
func (w *watcher) signal() {
	select {
	case w.moved <- struct{}{}:
	default:
	}
}

// run starts and stops watches as the ledger wants them until the context ends, and returns when all have ended.
func (w *watcher) run(ctx context.Context) {
	var watches sync.WaitGroup
	defer watches.Wait()
	running := map[watchKey]context.CancelFunc{}
	defer func() {
		for _, stop := range running {
			stop()
		}
	}()
	told := false
	for {
		chosen, beyond := choose(w.ledger.watches(), func(key watchKey) bool { return running[key] != nil }, w.limit)
		for key, stop := range running {
			if !slices.Contains(chosen, key) {
				stop()
				delete(running, key)
			}
		}
		w.leave(ctx, beyond, &told)
		for _, key := range chosen {
			if running[key] != nil {
				continue
			}
			follow, stop := context.WithCancel(ctx) //nolint:gosec // stopped above or at the end
			running[key] = stop
			watches.Go(func() { w.follow(follow, key) })
		}
		select {
		case <-ctx.Done():
			return
		case <-w.moved:
		}
	}
}

// leave has the objects of watches beyond the limit looked at every few minutes instead, and says so once.
func (w *watcher) leave(ctx context.Context, beyond []watchKey, told *bool) {
	for _, key := range beyond {
		w.ledger.refuse(key, beyondBound)
	}
	if len(beyond) > 0 && !*told {
		log.FromContext(ctx).Info(beyondBound+", so the objects of some are only looked at every few minutes; allow more"+
			" to have them repaired at once", "allowed", w.limit, "beyond", len(beyond), "such as", beyond[0].String())
	}
	*told = len(beyond) > 0
}

// follow lists and watches one resource in one namespace until the context ends.
func (w *watcher) follow(ctx context.Context, key watchKey) {
	resource := w.client.Resource(key.resource).Namespace(key.namespace)
	wentBack := func() {
		log.FromContext(ctx).Info("the API server went back to an earlier state, as after a restore from a backup;"+
			" the objects are read again", "watch", key.String())
	}
	lists := listWatch(w.clock, resource.List, resource.Watch)
	reflector := cache.NewReflectorWithOptions(cache.ToListWatcherWithWatchListSemantics(lists, w.client),
		&metav1.PartialObjectMetadata{}, &sightings{ledger: w.ledger, key: key, wentBack: wentBack},
		cache.ReflectorOptions{Name: "agent.work", TypeDescription: key.String()})
	relist := reconcile.Spread(w.relist, relistSpread, key.String())
	keepWatching(ctx, reflector, key.String(), relist, func(err error) {
		if ctx.Err() == nil && kindGone(err) {
			w.ledger.doubt(key) // the kind may be gone with its objects, or served in another version
		}
		if ctx.Err() == nil && refused(err) {
			w.refuse(ctx, key, err)
		}
	})
}

// keepWatching lists and watches until ctx ends, again after a pause whenever it stops; ended hears each time how it
// stopped, before the pause. After relist it lists anew, which shows what a watch may have missed; zero is never.
func keepWatching(
	ctx context.Context, reflector *cache.Reflector, what string, relist time.Duration, ended func(err error),
) {
	pause := firstPause
	for ctx.Err() == nil {
		before := reflector.LastSyncResourceVersion()
		err := listAndWatch(ctx, reflector, relist)
		ended(err)
		if reflector.LastSyncResourceVersion() != before {
			pause = firstPause // it worked meanwhile, so this failure is the first of an outage
		}
		switch {
		case ctx.Err() != nil:
			return
		case err == nil:
			pause = firstPause
			pauseFor(ctx, endedPause)
		case refused(err):
			pauseFor(ctx, pause)
			pause = min(2*pause, refusedPause)
		default:
			log.FromContext(ctx).V(1).Info("a watch failed", "watch", what, "error", err.Error())
			pauseFor(ctx, pause)
			pause = min(2*pause, lastPause)
		}
	}
}

// listAndWatch lists and watches once, for relist at most unless that is zero.
func listAndWatch(ctx context.Context, reflector *cache.Reflector, relist time.Duration) error {
	within, cancel := ctx, context.CancelFunc(func() {})
	if relist > 0 {
		within, cancel = context.WithTimeout(ctx, relist)
	}
	defer cancel()
	var err error
	if fault := contain(ctx, "a watch", func() { err = reflector.ListAndWatchWithContext(within) }); fault != nil {
		return fault
	}
	if within.Err() != nil {
		return nil // what was cut off says nothing of the API server
	}
	return err
}

// refuse tells the ledger that a watch is not allowed and says so once.
func (w *watcher) refuse(ctx context.Context, key watchKey, err error) {
	if w.ledger.refuse(key, err.Error()) {
		log.FromContext(ctx).Info("the API server refuses a watch, so its objects are only looked at every few minutes;"+
			" grant list and watch to have them repaired at once", "watch", key.String(), "error", err.Error())
	}
}

// refused reports whether an error of list or watch will not go away by itself.
func refused(err error) bool {
	return apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) || apierrors.IsNotFound(err) ||
		apierrors.IsMethodNotSupported(err)
}

// pauseFor waits for the pause or the end of the context.
func pauseFor(ctx context.Context, pause time.Duration) {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
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

// sightings is the store of one watch: it hands everything to the ledger and keeps nothing.
type sightings struct {
	ledger *ledger
	key    watchKey
	// wentBack is called when a list is older than what was seen before.
	wentBack func()
}

var _ cache.TransformingStore = (*sightings)(nil)

// Add tells the ledger of an object.
func (s *sightings) Add(obj any) error { return s.see(obj, false) }

// Update tells the ledger of an object.
func (s *sightings) Update(obj any) error { return s.see(obj, false) }

// Delete tells the ledger that an object is gone.
func (s *sightings) Delete(obj any) error { return s.see(obj, true) }

// Resync has nothing to do.
func (s *sightings) Resync() error { return nil }

// Replace tells the ledger the complete state of the watch.
func (s *sightings) Replace(items []any, version string) error {
	present := make(map[identity]sighting, len(items))
	for _, item := range items {
		object, ok := item.(*metav1.PartialObjectMetadata)
		if !ok {
			return fmt.Errorf("watching %s: got a %T", s.key, item)
		}
		present[s.identity(object)] = sightingOf(object)
	}
	if s.ledger.listed(s.key, present, version) {
		s.wentBack()
	}
	return nil
}

// Transformer drops what no sighting needs before the reflector collects a first list.
func (s *sightings) Transformer() cache.TransformFunc { return stripManagedFields }

// see tells the ledger of one object.
func (s *sightings) see(obj any, gone bool) error {
	object, ok := obj.(*metav1.PartialObjectMetadata)
	if !ok {
		return fmt.Errorf("watching %s: got a %T", s.key, obj)
	}
	seen := sightingOf(object)
	if gone {
		seen = sighting{gone: true, version: object.ResourceVersion}
	}
	s.ledger.see(s.identity(object), seen)
	return nil
}

// identity is which object was seen.
func (s *sightings) identity(object *metav1.PartialObjectMetadata) identity {
	return identity{
		Group: s.key.resource.Group, Resource: s.key.resource.Resource,
		Namespace: object.Namespace, Name: object.Name,
	}
}

// sightingOf is what is remembered of an object that was seen.
func sightingOf(object metav1.Object) sighting {
	return sighting{
		version: object.GetResourceVersion(), uid: object.GetUID(),
		generation: object.GetGeneration(), meta: fingerprint(object),
	}
}

// stripManagedFields drops the managed fields of an object in place; they are by far the largest part of most metadata.
func stripManagedFields(obj any) (any, error) {
	if object, ok := obj.(metav1.Object); ok {
		object.SetManagedFields(nil)
	}
	return obj, nil
}
