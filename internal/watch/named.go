package watch

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
)

// Named watches objects of one kind by their names, each as long as a pass waits for it. It is a source of a
// controller: a change of an object enqueues who waits for it. Objects that nobody waits for cost nothing, however many
// there are. Only metadata is received.
//
// It is also a reader that keeps the last read of an object as long as its watch shows that version, so that reading it
// again sends nothing. An object that is not watched, or not there, is read from the API server.
type Named struct {
	client     client.WithWatch
	kind       schema.GroupVersionKind
	controller string
	changed    Trigger

	mu      sync.Mutex
	waiting map[ctrl.Request][]string
	// watched has the watch of each object, as long as it runs.
	watched map[string]*named
	queue   workqueue.TypedRateLimitingInterface[ctrl.Request]
}

// NewNamed returns the source of a controller for objects without a namespace.
func NewNamed(controller string, c cluster.Cluster, kind schema.GroupVersionKind) (*Named, error) {
	direct, err := client.NewWithWatch(c.GetConfig(), client.Options{
		HTTPClient: c.GetHTTPClient(), Scheme: c.GetScheme(), Mapper: c.GetRESTMapper(),
	})
	if err != nil {
		return nil, fmt.Errorf("making a client to watch each %s: %w", kind.Kind, err)
	}
	return &Named{
		client: direct, kind: kind, controller: controller, changed: NewTrigger(),
		waiting: map[ctrl.Request][]string{}, watched: map[string]*named{},
	}, nil
}

var _ client.Reader = (*Named)(nil)

// Get implements client.Reader.
func (n *Named) Get(
	ctx context.Context, key client.ObjectKey, into client.Object, options ...client.GetOption,
) error {
	if n.recall(key.Name, into) {
		return nil
	}
	if err := n.client.Get(ctx, key, into, options...); err != nil {
		return err
	}
	n.keep(into)
	return nil
}

// List implements client.Reader; it always reads from the API server.
func (n *Named) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	return n.client.List(ctx, list, options...)
}

// recall copies the kept object of a name, and reports whether it is there and current.
func (n *Named) recall(name string, into client.Object) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	one := n.watched[name]
	if one == nil || one.kept == nil || one.shown == (version{}) || versionOf(one.kept) != one.shown {
		return false
	}
	from, to := reflect.ValueOf(one.kept.DeepCopyObject()), reflect.ValueOf(into)
	if from.Type() != to.Type() {
		return false
	}
	to.Elem().Set(from.Elem())
	return true
}

// keep keeps a copy of an object that is watched.
func (n *Named) keep(object client.Object) {
	n.mu.Lock()
	defer n.mu.Unlock()
	one := n.watched[object.GetName()]
	if one == nil {
		return
	}
	if kept, ok := object.DeepCopyObject().(client.Object); ok {
		kept.SetManagedFields(nil)
		one.kept = kept
	}
}

// Await sets the names of the objects that who waits for; none ends its waiting.
func (n *Named) Await(who ctrl.Request, names ...string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if slices.Equal(n.waiting[who], names) {
		return
	}
	if n.waiting[who] = names; len(names) == 0 {
		delete(n.waiting, who)
	}
	n.changed.Fire()
}

// Start watches until ctx ends; the controller calls it.
func (n *Named) Start(ctx context.Context, queue workqueue.TypedRateLimitingInterface[ctrl.Request]) error {
	n.mu.Lock()
	n.queue = queue
	n.mu.Unlock()
	set := Set[string]{Wanted: n.names, Start: n.start, Changed: n.changed}
	go set.Run(ctx)
	return nil
}

// names returns the names of all objects that are waited for.
func (n *Named) names(context.Context, func(string) bool) []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	var all []string
	for _, names := range n.waiting {
		all = append(all, names...)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// start returns the watch of one object.
func (n *Named) start(name string) func(context.Context) {
	source := FromClient(n.client, "", func() client.ObjectList {
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(n.kind.GroupVersion().WithKind(n.kind.Kind + "List"))
		return list
	})
	source.FieldSelector = fields.OneTermEqualSelector(metav1.ObjectNameField, name).String()
	handler := &named{Named: n, name: name}
	n.mu.Lock()
	n.watched[name] = handler
	n.mu.Unlock()
	one := Watch[client.Object]{
		Name: n.controller, Description: n.kind.Kind + " " + name, Source: source, Handler: handler,
		Ended: func(error) { handler.show(nil) },
	}
	return func(ctx context.Context) {
		defer handler.end()
		one.Run(ctx)
	}
}

// version is a version of an object; empty for none.
type version struct {
	uid    types.UID
	number string
}

func versionOf(object client.Object) version {
	return version{uid: object.GetUID(), number: object.GetResourceVersion()}
}

// named enqueues who waits for one object, also when the watch begins: the object may have changed before.
type named struct {
	*Named
	name string
	// shown is the version that the watch has shown last; empty while it does not run and for no object.
	shown version
	// kept is the object as last read; nil for none.
	kept client.Object
}

// Replace implements Handler.
func (n *named) Replace(_ context.Context, objects []client.Object, _ string) {
	var last client.Object
	for _, object := range objects { // of one name there is one at most
		last = object
	}
	n.show(last)
	n.enqueue()
}

// Update implements Handler.
func (n *named) Update(_ context.Context, object client.Object) {
	n.show(object)
	n.enqueue()
}

// Delete implements Handler.
func (n *named) Delete(context.Context, client.Object) {
	n.show(nil)
	n.enqueue()
}

// show notes what the watch has shown; nil for nothing.
func (n *named) show(object client.Object) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.shown = version{}
	if object != nil {
		n.shown = versionOf(object)
	}
	if n.kept != nil && versionOf(n.kept) != n.shown {
		n.kept = nil
	}
}

// end forgets the watch, unless another one of the same name has begun.
func (n *named) end() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.watched[n.name] == n {
		delete(n.watched, n.name)
	}
}

func (n *named) enqueue() {
	n.mu.Lock()
	defer n.mu.Unlock()
	for who, names := range n.waiting {
		if slices.Contains(names, n.name) {
			n.queue.Add(who)
		}
	}
}
