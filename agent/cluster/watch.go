package cluster

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	eventsv1client "k8s.io/client-go/kubernetes/typed/events/v1"
	"k8s.io/client-go/util/workqueue"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1alpha1 "open-cluster-management.io/api/cluster/v1alpha1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/spokelet/spokelet/internal/reconcile"
	"github.com/spokelet/spokelet/internal/watch"
)

// SetupWithManager adds the heartbeat, the watches of the spoke and the controller "agent.cluster" to mgr. The
// controller starts without waiting for the spoke: it reports a spoke that does not answer.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	if err := mgr.Add(r.Heartbeat); err != nil {
		return fmt.Errorf("adding the heartbeat: %w", err)
	}
	if err := r.watchSpoke(mgr); err != nil {
		return err
	}
	hubEvents, err := eventsv1client.NewForConfigAndClient(r.Hub.GetConfig(), r.Hub.GetHTTPClient())
	if err != nil {
		return fmt.Errorf("building the client of events on the hub: %w", err)
	}
	r.events = hubEvents.Events(r.Cluster)
	key := ctrl.Request{NamespacedName: types.NamespacedName{Name: r.Cluster}}
	return ctrl.NewControllerManagedBy(mgr).Named("agent.cluster").WithOptions(reconcile.Options(1)).
		WatchesRawSource(source.Kind(r.Hub.GetCache(), &clusterv1.ManagedCluster{},
			&handler.TypedEnqueueRequestForObject[*clusterv1.ManagedCluster]{})).
		WatchesRawSource(asyncSource{source.Kind(r.Spoke.GetCache(), &corev1.Node{}, debounced[*corev1.Node](key),
			nodeChanged())}).
		WatchesRawSource(r.Health.Failures.trigger.source(key)).
		WatchesRawSource(r.Heartbeat.trigger.source(key)).
		WatchesRawSource(r.trigger.source(key)).
		Complete(r)
}

// watchSpoke adds the watches of claims and namespaces to mgr.
func (r *Reconciler) watchSpoke(mgr ctrl.Manager) error {
	objects, err := dynamic.NewForConfigAndClient(r.Spoke.GetConfig(), r.Spoke.GetHTTPClient())
	if err != nil {
		return fmt.Errorf("building the client of the managed cluster: %w", err)
	}
	r.label, r.spaces = managedLabel(r.HubURL), objects.Resource(namespaces())
	r.namespaces = newNamespaces(r.label, r.trigger.Fire)
	r.hosting = objects.Resource(clusterClaims().WithVersion(clusterv1alpha1.GroupVersion.Version))
	if !r.NoClaims {
		r.claims = newOptionalKind(clusterClaims(), r.trigger.Fire, clusterv1alpha1.GroupVersion.Version)
	}
	if r.Properties {
		r.properties = newOptionalKind(clusterProperties(), r.trigger.Fire, "v1alpha1", "v1beta1")
	}
	return mgr.Add(manager.RunnableFunc(func(ctx context.Context) error {
		var watches sync.WaitGroup
		watches.Go(func() { r.namespaces.run(ctx, objects, r.spaces) })
		for _, kind := range []*optionalKind{r.claims, r.properties} {
			if kind != nil {
				watches.Go(func() { kind.run(ctx, objects) })
			}
		}
		watches.Wait()
		return nil
	}))
}

// asyncSource is a source whose first list the controller does not wait for.
type asyncSource struct{ source.Source }

// debounced requests one pass for all events within debounce.
func debounced[T client.Object](key ctrl.Request) handler.TypedEventHandler[T, ctrl.Request] {
	type queue = workqueue.TypedRateLimitingInterface[ctrl.Request]
	return handler.TypedFuncs[T, ctrl.Request]{
		CreateFunc: func(_ context.Context, _ event.TypedCreateEvent[T], q queue) { q.AddAfter(key, debounce) },
		UpdateFunc: func(_ context.Context, _ event.TypedUpdateEvent[T], q queue) { q.AddAfter(key, debounce) },
		DeleteFunc: func(_ context.Context, _ event.TypedDeleteEvent[T], q queue) { q.AddAfter(key, debounce) },
	}
}

// trigger requests passes of the one object that this package reconciles. A request that comes before the controller
// has started is kept.
type trigger struct {
	mu      sync.Mutex
	pending bool
	queue   workqueue.TypedRateLimitingInterface[ctrl.Request]
	key     ctrl.Request
}

// Fire requests a pass; it never blocks.
func (t *trigger) Fire() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.queue == nil {
		t.pending = true
		return
	}
	t.queue.AddAfter(t.key, debounce)
}

// source connects the trigger with the queue of a controller.
func (t *trigger) source(key ctrl.Request) source.Source {
	return source.Func(func(_ context.Context, q workqueue.TypedRateLimitingInterface[ctrl.Request]) error {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.queue, t.key = q, key
		if t.pending {
			t.pending = false
			q.Add(key)
		}
		return nil
	})
}

// debounce is the time after which one pass handles all events of nodes, claims and namespaces, which come in bursts.
const debounce = 500 * time.Millisecond

// definitions is the resource of CustomResourceDefinitions.
func definitions() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
}

// optionalKind keeps the claims of a kind whose CustomResourceDefinition may come and go while the agent runs. It
// watches that one definition by its name, and the kind itself as long as the definition serves it. Where the agent may
// not watch definitions, it watches the kind directly and tries again every few minutes while the kind is not served.
type optionalKind struct {
	// resource is the kind, without version.
	resource schema.GroupResource
	// versions are those that the agent understands, the preferred one first.
	versions   []string
	definition *collection[definition]
	claims     *collection[claim]
	// redefined signals that the definition changed.
	redefined watch.Trigger
}

// newOptionalKind returns the claims of a kind; changed is called when they change.
func newOptionalKind(resource schema.GroupResource, changed func(), versions ...string) *optionalKind {
	k := &optionalKind{resource: resource, versions: versions, redefined: watch.NewTrigger()}
	k.definition = newCollection("the definition of "+resource.String(), definitionOf, k.redefined.Fire)
	k.definition.fieldSelector = fields.OneTermEqualSelector(metav1.ObjectNameField, resource.String()).String()
	k.claims = newCollection(resource.String(), claimOf, changed)
	return k
}

// run watches until ctx ends.
func (k *optionalKind) run(ctx context.Context, client dynamic.Interface) {
	var watches sync.WaitGroup
	defer watches.Wait()
	watches.Go(func() { k.definition.run(ctx, client, client.Resource(definitions())) })
	began, running, stop := false, "", func() {}
	defer func() { stop() }()
	for {
		if version, known := k.version(); known && (!began || version != running) {
			stop()
			stop = k.start(ctx, client, version)
			began, running = true, version
		}
		select {
		case <-ctx.Done():
			return
		case <-k.redefined:
		}
	}
}

// version returns the version in which to watch the kind, empty for none, and whether that is known.
func (k *optionalKind) version() (version string, known bool) {
	if k.definition.forbidden.Load() {
		return k.versions[0], true
	}
	found, known := k.definition.List()
	for _, d := range found {
		return d.serves(k.versions), true
	}
	return "", known
}

// start watches the kind in a version until the returned function is called, which waits for the end of the watch.
func (k *optionalKind) start(ctx context.Context, client dynamic.Interface, version string) (stop func()) {
	if version == "" {
		k.claims.Clear(true)
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		k.claims.run(ctx, client, client.Resource(k.resource.WithVersion(version)))
	}()
	return func() {
		cancel()
		<-done
	}
}

// definition is the value kept of a CustomResourceDefinition: the versions that it serves, each with a comma before and
// after; none before it is established.
type definition string

// definitionOf reads a CustomResourceDefinition. A malformed one serves nothing.
func definitionOf(object *unstructured.Unstructured) (definition, error) {
	conditions, _, _ := unstructured.NestedSlice(object.Object, "status", "conditions")
	established := slices.ContainsFunc(conditions, func(c any) bool {
		condition, _ := c.(map[string]any)
		return condition["type"] == "Established" && condition["status"] == "True"
	})
	if !established {
		return "", nil
	}
	var served strings.Builder
	versions, _, _ := unstructured.NestedSlice(object.Object, "spec", "versions")
	for _, v := range versions {
		version, _ := v.(map[string]any)
		if name, ok := version["name"].(string); ok && version["served"] == true {
			served.WriteString("," + name + ",")
		}
	}
	return definition(served.String()), nil
}

// serves returns the first of the versions that is served, empty for none.
func (d definition) serves(versions []string) string {
	for _, version := range versions {
		if strings.Contains(string(d), ","+version+",") {
			return version
		}
	}
	return ""
}
