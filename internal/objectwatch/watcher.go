package objectwatch

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"github.com/spokelet/spokelet/internal/watch"
)

const (
	// DefaultLimit is how many objects are watched at most. One watch costs this process some 30 KiB and the API server
	// about the same.
	DefaultLimit = 2000
	// concurrent is how many requests are under way at once, so that a restarted API server is not flooded.
	concurrent = 20
	// retryAfter is how long a watch has been refused at least that is tried again because another one is permitted.
	retryAfter = 5 * time.Second
)

// Watcher watches the objects that its owners want, until the context of Start ends. Its methods may be called from
// many goroutines, also before Start.
type Watcher struct {
	dynamic   dynamic.Interface
	discovery Discovery
	limit     int
	clock     clock.WithDelayedExecution
	// changed is called without the lock.
	changed func(Ref)
	// look signals that there is a kind to look up, unsettled that there are references to settle.
	look, unsettled watch.Trigger
	// slots bounds the requests under way.
	slots chan struct{}

	mu      sync.Mutex
	owners  map[string]wanted
	entries map[Ref]*entry
	kinds   map[schema.GroupResource]*kindEntry
	// settling are the references whose watches are to be started or stopped; waiting are those beyond the limit.
	settling, waiting []Ref
	// running is the number of watches.
	running int
}

// wanted are the references of one owner, and those beyond its share.
type wanted struct{ refs, beyond []Ref }

// entry is a reference that a caller wants.
type entry struct {
	observed
	// owners is the number of owners for which it is watched, refused of those beyond whose share it is.
	owners, refused int
	// resource names what is watched, and stop ends the watch; nil without a watch.
	resource schema.GroupVersionResource
	stop     context.CancelFunc
	// run identifies the watch, so that the last events of an earlier one are ignored.
	run int
	// restart is set to start the watch again now.
	restart bool
}

// New returns a Watcher that watches at most limit objects; zero means DefaultLimit. changed is called whenever the
// answer of Get for an object changes, from any goroutine; it must not block.
func New(config *rest.Config, limit int, changed func(Ref)) (*Watcher, error) {
	objects, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("building the client of referenced objects: %w", err)
	}
	bounded := rest.CopyConfig(config)
	bounded.Timeout = discoveryTimeout
	kinds, err := discovery.NewDiscoveryClientForConfig(bounded)
	if err != nil {
		return nil, fmt.Errorf("building the discovery client of referenced objects: %w", err)
	}
	return NewFor(Hub{Objects: objects, Kinds: kinds, Clock: clock.RealClock{}}, limit, changed), nil
}

// Hub is where a Watcher watches.
type Hub struct {
	// Objects reads and watches objects, and Kinds knows which there are.
	Objects dynamic.Interface
	Kinds   Discovery
	// Clock is the clock of the Watcher.
	Clock clock.WithDelayedExecution
}

// NewFor is New with the clients and the clock of the caller.
func NewFor(hub Hub, limit int, changed func(Ref)) *Watcher {
	if limit == 0 {
		limit = DefaultLimit
	}
	return &Watcher{
		dynamic: hub.Objects, discovery: hub.Kinds, limit: limit, clock: hub.Clock, changed: changed,
		look: watch.NewTrigger(), unsettled: watch.NewTrigger(), slots: make(chan struct{}, concurrent),
		owners: map[string]wanted{}, entries: map[Ref]*entry{}, kinds: map[schema.GroupResource]*kindEntry{},
	}
}

// Start watches until ctx ends, and returns when all watches have ended. It implements Runnable of controller-runtime.
func (w *Watcher) Start(ctx context.Context) error {
	var running sync.WaitGroup
	defer running.Wait()
	running.Go(func() { w.resolve(ctx) })
	for {
		for _, ref := range w.takeSettling() {
			if run := w.settle(ctx, ref); run != nil {
				running.Go(run)
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-w.unsettled:
		}
	}
}

// Want replaces the references of an owner; none means that the owner is gone. The objects are read soon after. Those
// beyond its share are not watched for it, and unknown unless others want them.
func (w *Watcher) Want(owner string, refs []Ref, beyond ...Ref) {
	w.mu.Lock()
	defer w.mu.Unlock()
	before := w.owners[owner]
	if slices.Equal(before.refs, refs) && slices.Equal(before.beyond, beyond) {
		return
	}
	w.owners[owner] = wanted{refs: slices.Clone(refs), beyond: slices.Clone(beyond)}
	if len(refs)+len(beyond) == 0 {
		delete(w.owners, owner)
	}
	for _, ref := range refs {
		w.entry(ref).owners++
	}
	for _, ref := range beyond {
		w.entry(ref).refused++
	}
	for _, ref := range before.refs {
		w.entries[ref].owners--
	}
	for _, ref := range before.beyond {
		w.entries[ref].refused--
	}
	for _, ref := range slices.Concat(refs, beyond, before.refs, before.beyond) {
		if w.entries[ref].changed() {
			w.settleLater(ref)
		}
	}
}

// changed reports whether it changed if an object is wanted at all, or is to be watched.
func (e *entry) changed() bool {
	return e.owners+e.refused == 0 || e.unshared != (e.owners == 0)
}

// entry returns the entry of a reference, and makes it if there is none.
func (w *Watcher) entry(ref Ref) *entry {
	if e := w.entries[ref]; e != nil {
		return e
	}
	e := &entry{}
	w.entries[ref] = e
	k := w.kinds[ref.GroupResource()]
	if k == nil {
		k = &kindEntry{refs: map[Ref]struct{}{}, forbidden: map[Ref]time.Time{}}
		w.kinds[ref.GroupResource()] = k
		w.look.Fire()
	}
	k.refs[ref] = struct{}{}
	w.settleLater(ref)
	return e
}

// Get returns what is known of an object. Of an object that nobody wants nothing is known.
func (w *Watcher) Get(ref Ref) State {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.state(ref)
}

func (w *Watcher) state(ref Ref) State {
	e, k := w.entries[ref], w.kinds[ref.GroupResource()]
	if e == nil {
		return stateOf(ref, kind{}, observed{}, w.limit)
	}
	return stateOf(ref, k.kind, e.observed, w.limit)
}

// Watches returns the number of objects that are watched.
func (w *Watcher) Watches() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.running
}

// report calls the callback for each reference.
func (w *Watcher) report(refs ...Ref) {
	for _, ref := range refs {
		w.changed(ref)
	}
}

// settleLater has Start start or stop the watch of a reference.
func (w *Watcher) settleLater(ref Ref) {
	w.settling = append(w.settling, ref)
	w.unsettled.Fire()
}

func (w *Watcher) takeSettling() []Ref {
	w.mu.Lock()
	defer w.mu.Unlock()
	refs := w.settling
	w.settling = nil
	return refs
}

// settle stops the watch of a reference if it is not as it should be, and returns the function that runs a new one if
// there should be one.
func (w *Watcher) settle(ctx context.Context, ref Ref) (run func()) {
	w.mu.Lock()
	e, k := w.entries[ref], w.kinds[ref.GroupResource()]
	if e == nil {
		w.mu.Unlock()
		return nil
	}
	before := w.state(ref)
	watchable := e.watchable(ref, k)
	if e.stop != nil && (!watchable || e.restart || e.resource != k.resource) {
		w.end(ref, e)
	}
	e.unshared = e.owners == 0
	switch {
	case e.owners+e.refused == 0:
		w.forget(ref)
		after := w.state(ref)
		w.mu.Unlock()
		if !before.same(after) { // A caller that keeps what was read is not told any more when it changes.
			w.report(ref)
		}
		return nil
	case !watchable || e.stop != nil:
	case w.running >= w.limit:
		if !e.beyond {
			e.beyond = true
			w.waiting = append(w.waiting, ref)
		}
	default:
		run = w.begin(ctx, ref, e, k.resource)
	}
	after := w.state(ref)
	w.mu.Unlock()
	if !before.same(after) {
		w.report(ref)
	}
	return run
}

// begin returns the function that runs the watch of a reference.
func (w *Watcher) begin(ctx context.Context, ref Ref, e *entry, resource schema.GroupVersionResource) func() {
	if e.restart {
		w.kinds[ref.GroupResource()].forbidden[ref] = w.clock.Now()
	}
	within, stop := context.WithCancel(ctx)
	e.beyond, e.restart, e.resource, e.stop = false, false, resource, stop
	e.run++
	w.running++
	h := &handler{watcher: w, ref: ref, run: e.run}
	objects := dynamic.ResourceInterface(w.dynamic.Resource(resource))
	if ref.Namespace != "" {
		objects = w.dynamic.Resource(resource).Namespace(ref.Namespace)
	}
	return func() {
		defer stop()
		one := watch.Watch[*unstructured.Unstructured]{
			Name: "objectwatch", Description: ref.String(), Source: h.source(w.dynamic, objects), Handler: h, Trim: trim,
			Refused: watch.Refused, Ended: h.ended, Clock: w.clock,
		}
		one.Run(within)
	}
}

// end stops the watch of an entry and lets the next reference beyond the limit have its place. What was observed counts
// no more, unless the same watch starts again.
func (w *Watcher) end(ref Ref, e *entry) {
	e.stop()
	e.stop = nil
	e.run++
	w.running--
	if !e.restart {
		e.observed = observed{}
		delete(w.kinds[ref.GroupResource()].forbidden, ref)
	}
	for len(w.waiting) > 0 {
		next := w.waiting[0]
		w.waiting = w.waiting[1:]
		waits, k := w.entries[next], w.kinds[next.GroupResource()]
		if waits == nil || !waits.beyond {
			continue
		}
		waits.beyond = false
		if waits.watchable(next, k) {
			w.settleLater(next)
			return
		}
	}
}

// watchable reports whether the object is to be watched.
func (e *entry) watchable(ref Ref, k *kindEntry) bool {
	return e.owners > 0 && k.phase == kindServed && k.namespaced == (ref.Namespace != "")
}

// forget removes a reference that nobody wants.
func (w *Watcher) forget(ref Ref) {
	resource := ref.GroupResource()
	delete(w.entries, ref)
	k := w.kinds[resource]
	delete(k.refs, ref)
	delete(k.forbidden, ref)
	if len(k.refs) == 0 {
		delete(w.kinds, resource)
	}
}

// trim drops from an object what nobody reads. The status is another party's report and changes often.
func trim(object *unstructured.Unstructured) {
	delete(object.Object, "status")
	unstructured.RemoveNestedField(object.Object, "metadata", "annotations", corev1.LastAppliedConfigAnnotation)
}
