package cluster

import (
	"context"
	"fmt"
	"sync"

	corev1 "k8s.io/api/core/v1"
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
