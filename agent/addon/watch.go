package addon

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// target is one object that is watched alone.
type target struct {
	side            side
	kind            targetKind
	namespace, name string
}

// targetKind is the kind of a target. Of all but Leases, only the metadata is read.
type targetKind string

const (
	kindLease     targetKind = "Lease"
	kindNamespace targetKind = "Namespace"
	kindSecret    targetKind = "Secret"
)

// sight is what is known of a target.
type sight struct {
	// known reports whether the target was seen or seen to be absent, and the watch works.
	known bool
	// cause says why it is not known, when something went wrong.
	cause error
	// object is the target; nil when it is absent.
	object client.Object
	// skew is the distance of the clock of who renews a Lease, where it can be told; else nil.
	skew *skew
}

// watcher watches single objects for as long as an add-on wants them. It is a source of a controller: what happens to a
// target leads to a pass of each add-on that wants it.
type watcher struct {
	clients map[side]client.WithWatch
	// cluster is the namespace of the add-ons.
	cluster string
	// matters reports whether the change of a Lease is worth a pass.
	matters func(before, after *coordinationv1.Lease) bool
	// clock tells when something was seen.
	clock clock.PassiveClock
	// moved holds one signal when what is wanted changed.
	moved chan struct{}

	mu      sync.Mutex
	wanted  map[string][]target
	glasses map[target]*glass
	queue   workqueue.TypedRateLimitingInterface[ctrl.Request]
}

func newWatcher(
	clients map[side]client.WithWatch, cluster string, matters func(before, after *coordinationv1.Lease) bool,
	now clock.PassiveClock,
) *watcher {
	return &watcher{
		clients: clients, cluster: cluster, matters: matters, clock: now, moved: make(chan struct{}, 1),
		wanted: map[string][]target{}, glasses: map[target]*glass{},
	}
}

// Start watches until ctx ends; it is called by the controller.
func (w *watcher) Start(ctx context.Context, queue workqueue.TypedRateLimitingInterface[ctrl.Request]) error {
	w.mu.Lock()
	w.queue = queue
	w.mu.Unlock()
	go w.run(ctx)
	return nil
}

// want says what an add-on wants to be watched from now on, nothing for an add-on that is gone.
func (w *watcher) want(addon string, targets ...target) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if slices.Equal(w.wanted[addon], targets) {
		return
	}
	if w.wanted[addon] = targets; len(targets) == 0 {
		delete(w.wanted, addon)
	}
	select {
	case w.moved <- struct{}{}:
	default:
	}
}

// look returns what is known of a target.
func (w *watcher) look(t target) sight {
	w.mu.Lock()
	g := w.glasses[t]
	w.mu.Unlock()
	if g == nil {
		return sight{}
	}
	return g.look()
}

// run starts and stops the watches as they are wanted.
func (w *watcher) run(ctx context.Context) {
	stops := map[target]context.CancelFunc{}
	for {
		w.mu.Lock()
		wanted := map[target]bool{}
		for _, targets := range w.wanted {
			for _, t := range targets {
				wanted[t] = true
			}
		}
		for t, stop := range stops {
			if !wanted[t] {
				stop()
				delete(stops, t)
				delete(w.glasses, t)
			}
		}
		for t := range wanted {
			if stops[t] == nil {
				g := &glass{clock: w.clock, changed: func(before, after client.Object) { w.wake(t, before, after) }}
				stops[t], w.glasses[t] = w.keepOn(ctx, t, g), g
			}
		}
		w.mu.Unlock()
		select {
		case <-ctx.Done():
			for _, stop := range stops {
				stop()
			}
			return
		case <-w.moved:
		}
	}
}

// keepOn keeps a glass on its target until the returned function is called.
func (w *watcher) keepOn(ctx context.Context, t target, g *glass) context.CancelFunc {
	ctx, stop := context.WithCancel(ctx)
	go func() {
		defer stop()
		w.reflector(t, g).RunWithContext(ctx)
	}()
	return stop
}

// wake asks for a pass of every add-on that wants the target, unless nothing of interest changed.
func (w *watcher) wake(t target, before, after client.Object) {
	was, _ := before.(*coordinationv1.Lease)
	is, _ := after.(*coordinationv1.Lease)
	if was != nil && is != nil && !w.matters(was, is) {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for addon, targets := range w.wanted {
		if slices.Contains(targets, t) {
			w.queue.Add(ctrl.Request{NamespacedName: types.NamespacedName{Namespace: w.cluster, Name: addon}})
		}
	}
}

// reflector keeps a glass on its target.
func (w *watcher) reflector(t target, g *glass) *cache.Reflector {
	c := w.clients[t.side]
	options := func(o metav1.ListOptions) *client.ListOptions {
		o.FieldSelector = ""
		return &client.ListOptions{
			Namespace: t.namespace, FieldSelector: fields.OneTermEqualSelector("metadata.name", t.name), Raw: &o,
		}
	}
	lw := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			list := t.emptyList()
			err := c.List(ctx, list, options(o))
			g.heard(err)
			return list, err
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			events, err := c.Watch(ctx, t.emptyList(), options(o))
			g.heard(err)
			return events, err
		},
	}
	return cache.NewReflectorWithOptions(lw, nil, g, cache.ReflectorOptions{
		Name: "agent.addon", TypeDescription: t.String(),
	})
}

func (t target) emptyList() client.ObjectList {
	if t.kind == kindLease {
		return &coordinationv1.LeaseList{}
	}
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind(string(t.kind) + "List"))
	return list
}

// String names the target for people.
func (t target) String() string {
	if t.namespace == "" {
		return strings.ToLower(string(t.kind)) + " " + t.name
	}
	return fmt.Sprintf("%s %s/%s", strings.ToLower(string(t.kind)), t.namespace, t.name)
}

// glass holds what was seen last of one target. It is the store that a reflector writes to.
type glass struct {
	// changed is told what changed, without the lock.
	changed func(before, after client.Object)
	clock   clock.PassiveClock

	mu     sync.Mutex
	synced bool
	cause  error
	object client.Object
	// renewed is the last renewal of a Lease that was seen to happen, skew what it and the one before it tell.
	renewed renewal
	skew    *skew
}

func (g *glass) look() sight {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.synced || g.cause != nil {
		return sight{cause: g.cause}
	}
	return sight{known: true, object: g.object, skew: g.skew}
}

// heard notes whether the API server answers. When it does so again, what it said meanwhile may have been missed.
func (g *glass) heard(err error) {
	g.mu.Lock()
	recovered := g.synced && g.cause != nil && err == nil
	g.cause = err
	g.mu.Unlock()
	if recovered {
		g.changed(nil, nil)
	}
}

func (g *glass) see(object client.Object) {
	if object != nil {
		object.SetManagedFields(nil)
	}
	g.mu.Lock()
	before := g.object
	if !g.synced {
		before = nil
	}
	g.synced, g.object = true, object
	g.mu.Unlock()
	g.changed(before, object)
}

// Add is part of the store of a reflector.
func (g *glass) Add(object any) error { return g.Update(object) }

// Update is part of the store of a reflector.
func (g *glass) Update(object any) error {
	seen, ok := object.(client.Object)
	if !ok {
		return fmt.Errorf("watching one object: %T is none", object)
	}
	g.noteRenewal(seen)
	g.see(seen)
	return nil
}

// noteRenewal compares the clock of who renews a Lease with ours.
func (g *glass) noteRenewal(object client.Object) {
	after, ok := object.(*coordinationv1.Lease)
	g.mu.Lock()
	defer g.mu.Unlock()
	before, had := g.object.(*coordinationv1.Lease)
	if !ok || !had || after.Spec.RenewTime.IsZero() || before.Spec.RenewTime.Equal(after.Spec.RenewTime) {
		return
	}
	now := renewal{carried: after.Spec.RenewTime.Time, seen: g.clock.Now()}
	if g.skew = nil; !g.renewed.seen.IsZero() {
		g.skew = measure(g.renewed, now)
	}
	g.renewed = now
}

// Delete is part of the store of a reflector.
func (g *glass) Delete(any) error {
	g.see(nil)
	return nil
}

// Replace is part of the store of a reflector.
func (g *glass) Replace(objects []any, _ string) error {
	if len(objects) == 0 {
		g.see(nil)
		return nil
	}
	seen, ok := objects[0].(client.Object)
	if !ok {
		return fmt.Errorf("watching one object: %T is none", objects[0])
	}
	g.see(seen) // when it was renewed, a list does not say
	return nil
}

// Resync is part of the store of a reflector.
func (g *glass) Resync() error { return nil }
