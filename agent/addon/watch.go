package addon

import (
	"context"
	"slices"
	"sync"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	apiwatch "k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/internal/watch"
)

// watcher watches the targets that add-ons want. It is a source of a controller: a change of a target enqueues each
// add-on that wants it.
type watcher struct {
	clients map[side]client.WithWatch
	// cluster is the namespace of the add-ons.
	cluster string
	// relevant reports whether the change of a Lease needs a pass.
	relevant func(before, after *coordinationv1.Lease) bool
	// clock stamps the renewals of Leases.
	clock clock.PassiveClock
	// changed signals that the wanted targets changed.
	changed watch.Trigger

	mu     sync.Mutex
	wanted map[string][]target
	states map[target]*targetState
	queue  workqueue.TypedRateLimitingInterface[ctrl.Request]
}

func newWatcher(
	clients map[side]client.WithWatch, cluster string, relevant func(before, after *coordinationv1.Lease) bool,
	now clock.PassiveClock,
) *watcher {
	return &watcher{
		clients: clients, cluster: cluster, relevant: relevant, clock: now, changed: watch.NewTrigger(),
		wanted: map[string][]target{}, states: map[target]*targetState{},
	}
}

// Start watches until ctx ends; the controller calls it.
func (w *watcher) Start(ctx context.Context, queue workqueue.TypedRateLimitingInterface[ctrl.Request]) error {
	w.mu.Lock()
	w.queue = queue
	w.mu.Unlock()
	go w.run(ctx)
	return nil
}

// want sets the targets of an add-on; none for an add-on that is gone.
func (w *watcher) want(addon string, targets ...target) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if slices.Equal(w.wanted[addon], targets) {
		return
	}
	if w.wanted[addon] = targets; len(targets) == 0 {
		delete(w.wanted, addon)
	}
	w.changed.Fire()
}

// get returns the last observation of a target.
func (w *watcher) get(t target) observation {
	w.mu.Lock()
	state := w.states[t]
	w.mu.Unlock()
	if state == nil {
		return observation{}
	}
	return state.get()
}

// run starts and stops watches as targets are wanted, until ctx ends.
func (w *watcher) run(ctx context.Context) {
	set := watch.Set[target]{Wanted: w.targets, Start: w.start, Changed: w.changed}
	set.Run(ctx)
}

// targets returns all wanted targets, and forgets the state of those that are wanted no more.
func (w *watcher) targets(context.Context, func(target) bool) []target {
	w.mu.Lock()
	defer w.mu.Unlock()
	states, wanted := map[target]*targetState{}, []target(nil)
	for _, targets := range w.wanted {
		for _, t := range targets {
			if states[t] != nil {
				continue
			}
			if states[t] = w.states[t]; states[t] == nil {
				states[t] = &targetState{
					clock: w.clock, changed: func(before, after client.Object) { w.enqueue(t, before, after) },
				}
			}
			wanted = append(wanted, t)
		}
	}
	w.states = states
	return wanted
}

// start returns the watch of a target.
func (w *watcher) start(t target) func(context.Context) {
	w.mu.Lock()
	state := w.states[t]
	w.mu.Unlock()
	one := watch.Watch[client.Object]{
		Name: "agent.addon", Description: t.String(), Source: t.source(w.clients[t.side], state), Handler: state,
	}
	return one.Run
}

// enqueue requests a pass of every add-on that wants the target, unless the change is irrelevant.
func (w *watcher) enqueue(t target, before, after client.Object) {
	was, _ := before.(*coordinationv1.Lease)
	is, _ := after.(*coordinationv1.Lease)
	if was != nil && is != nil && !w.relevant(was, is) {
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

// source lists and watches the target, and reports to state whether each request succeeded.
func (t target) source(c client.WithWatch, state *targetState) watch.Source {
	source := watch.FromClient(c, t.namespace, t.emptyList)
	source.FieldSelector = fields.OneTermEqualSelector(metav1.ObjectNameField, t.name).String()
	list, follow := source.List, source.Watch
	source.List = func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
		found, err := list(ctx, options)
		state.answered(err)
		return found, err
	}
	source.Watch = func(ctx context.Context, options metav1.ListOptions) (apiwatch.Interface, error) {
		events, err := follow(ctx, options)
		state.answered(err)
		return events, err
	}
	return source
}

func (t target) emptyList() client.ObjectList {
	if t.kind == kindLease {
		return &coordinationv1.LeaseList{}
	}
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind(string(t.kind) + "List"))
	return list
}
