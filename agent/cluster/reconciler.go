package cluster

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	eventsv1client "k8s.io/client-go/kubernetes/typed/events/v1"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1alpha1 "open-cluster-management.io/api/cluster/v1alpha1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/spokelet/spokelet/internal/reconcile"
)

// debounce gathers the events of nodes, claims and namespaces, which come in crowds, into one pass.
const debounce = 500 * time.Millisecond

// Reconciler writes the status of the ManagedCluster of this agent and steers its heartbeat.
type Reconciler struct {
	// Hub is the hub; its cache watches the ManagedCluster named Cluster, with the transform StripManagedCluster, and
	// needs to hold no other.
	Hub cluster.Cluster
	// Spoke is the managed cluster; its cache watches Nodes, with the transform StripNode. What else is read there
	// (claims, namespaces) the reconciler watches itself.
	Spoke cluster.Cluster
	// Cluster is the name of the cluster and of its namespace on the hub.
	Cluster string
	// HubURL is the address of the hub as it stands in the kubeconfig; its hash marks the namespaces that the hub manages.
	HubURL string
	// NoClaims leaves ClusterClaims out; Properties takes ClusterProperties in (feature gates ClusterClaim and
	// ClusterProperty). Without either the claims of the ManagedCluster are left as they are.
	NoClaims, Properties bool
	// Claims says which claims are reported.
	Claims ClaimRules
	// Period is the longest time between two passes; zero needs none but those that something asks for. It is a safety
	// net: a pass at rest looks at caches and sends nothing, and the API server of the spoke is probed when there is
	// reason to, whatever the period (docs/adr/0010).
	Period time.Duration
	// Health tells how the API server of the spoke is.
	Health *Health
	// Heartbeat is steered by this reconciler; SetupWithManager adds it to the manager.
	Heartbeat *Heartbeat
	// Clock tells the time.
	Clock clock.PassiveClock

	// claims and properties are nil when they are left out.
	claims, properties *optionalKind
	namespaces         *collection[namespace]
	// label is the key of the label of managed namespaces.
	label  string
	spaces dynamic.ResourceInterface
	events events
	bell   bell
}

// SetupWithManager adds the heartbeat, the watches of the spoke and the controller "agent.cluster" to mgr. The
// controller waits for the ManagedCluster alone: a spoke that does not answer is what it is to tell the hub.
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
		WatchesRawSource(unawaited{source.Kind(r.Spoke.GetCache(), &corev1.Node{}, gather[*corev1.Node](key),
			nodeChanged())}).
		WatchesRawSource(r.Health.Traffic.bell.source(key)).
		WatchesRawSource(r.Heartbeat.bell.source(key)).
		WatchesRawSource(r.bell.source(key)).
		Complete(r)
}

// watchSpoke adds the watches of claims and namespaces to mgr.
func (r *Reconciler) watchSpoke(mgr ctrl.Manager) error {
	objects, err := dynamic.NewForConfigAndClient(r.Spoke.GetConfig(), r.Spoke.GetHTTPClient())
	if err != nil {
		return fmt.Errorf("building the client of the managed cluster: %w", err)
	}
	r.label, r.spaces = managedLabel(r.HubURL), objects.Resource(namespaces())
	r.namespaces = newNamespaces(r.label, r.bell.Ring)
	if !r.NoClaims {
		r.claims = newOptionalKind(clusterClaims(), r.bell.Ring, clusterv1alpha1.GroupVersion.Version)
	}
	if r.Properties {
		r.properties = newOptionalKind(clusterProperties(), r.bell.Ring, "v1alpha1", "v1beta1")
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

// unawaited is a source that the controller does not wait for.
type unawaited struct{ source.Source }

// Reconcile brings the heartbeat, the marks of namespaces and the status of the ManagedCluster up to date.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	if req.Name != r.Cluster {
		return reconcile.Done().Settle(r.Clock.Now())
	}
	f, err := r.observe(ctx)
	if err != nil {
		return reconcile.FromError(err).Settle(f.now)
	}
	p := decide(f)
	results := r.act(ctx, p)
	outcome := reconcile.FromError(failures(results)).And(reconcile.DoneUntil(p.wake))
	if f.cluster == nil {
		return outcome.Settle(f.now)
	}
	after := conclude(f, p, results)
	hub := client.WithFieldOwner(r.Hub.GetClient(), fieldManager)
	written, err := reconcile.PatchStatus(ctx, hub, f.cluster, after)
	if written && err == nil {
		r.tell(ctx, f.cluster, after, f.now)
	}
	return outcome.And(reconcile.FromError(err)).Settle(f.now)
}

// gather asks for one pass for all events within debounce.
func gather[T client.Object](key ctrl.Request) handler.TypedEventHandler[T, ctrl.Request] {
	type queue = workqueue.TypedRateLimitingInterface[ctrl.Request]
	return handler.TypedFuncs[T, ctrl.Request]{
		CreateFunc: func(_ context.Context, _ event.TypedCreateEvent[T], q queue) { q.AddAfter(key, debounce) },
		UpdateFunc: func(_ context.Context, _ event.TypedUpdateEvent[T], q queue) { q.AddAfter(key, debounce) },
		DeleteFunc: func(_ context.Context, _ event.TypedDeleteEvent[T], q queue) { q.AddAfter(key, debounce) },
	}
}
