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

// debounce is the time after which one pass handles all events of nodes, claims and namespaces, which come in bursts.
const debounce = 500 * time.Millisecond

// Reconciler writes the status of the ManagedCluster of this agent and controls its heartbeat.
type Reconciler struct {
	// Hub is the hub; its cache watches the ManagedCluster named Cluster, with the transform StripManagedCluster, and
	// needs to hold no other.
	Hub cluster.Cluster
	// Spoke is the managed cluster; its cache watches Nodes, with the transform StripNode. The reconciler watches claims
	// and namespaces itself.
	Spoke cluster.Cluster
	// Cluster is the name of the cluster and of its namespace on the hub.
	Cluster string
	// HubURL is the address of the hub in the kubeconfig; its hash is in the label of the namespaces that the hub manages.
	HubURL string
	// NoClaims disables ClusterClaims, Properties enables ClusterProperties (feature gates ClusterClaim and
	// ClusterProperty). With neither of them the claims of the ManagedCluster stay unchanged.
	NoClaims, Properties bool
	// Claims selects the claims that are reported.
	Claims ClaimRules
	// Period is the longest time between two passes; zero means no limit. It is a safety net: a pass in which nothing
	// changed reads caches and sends nothing, and probes do not depend on the period (docs/adr/0006).
	Period time.Duration
	// Health probes the API server of the spoke.
	Health *Health
	// Heartbeat is controlled by this reconciler; SetupWithManager adds it to the manager.
	Heartbeat *Heartbeat
	// OnAbsent is called in each pass with why the agent has no ManagedCluster to report to, and with an empty text when
	// it has one. Optional; it must not block.
	OnAbsent func(text string)
	// Clock is the clock of a pass.
	Clock clock.PassiveClock

	// claims and properties are nil when they are disabled.
	claims, properties *optionalKind
	namespaces         *collection[namespace]
	// label is the key of the label of managed namespaces.
	label   string
	spaces  dynamic.ResourceInterface
	events  events
	trigger trigger
	// summed is when sums over the nodes were written last; only passes use it, one at a time.
	summed time.Time
}

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

// Reconcile updates the heartbeat, the labels of namespaces and the status of the ManagedCluster.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	if req.Name != r.Cluster {
		return reconcile.Done().Settle(r.Clock.Now())
	}
	f, err := r.observe(ctx)
	if err != nil {
		return reconcile.FromError(err).Settle(f.now)
	}
	if r.OnAbsent != nil {
		r.OnAbsent(f.absent)
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
	if written && p.refresh && !p.withhold && sumsChange(f) {
		r.summed = f.now
	}
	if written && err == nil {
		r.recordEvent(ctx, f.cluster, after, f.now)
	}
	return outcome.And(reconcile.FromError(err)).Settle(f.now)
}

// debounced requests one pass for all events within debounce.
func debounced[T client.Object](key ctrl.Request) handler.TypedEventHandler[T, ctrl.Request] {
	type queue = workqueue.TypedRateLimitingInterface[ctrl.Request]
	return handler.TypedFuncs[T, ctrl.Request]{
		CreateFunc: func(_ context.Context, _ event.TypedCreateEvent[T], q queue) { q.AddAfter(key, debounce) },
		UpdateFunc: func(_ context.Context, _ event.TypedUpdateEvent[T], q queue) { q.AddAfter(key, debounce) },
		DeleteFunc: func(_ context.Context, _ event.TypedDeleteEvent[T], q queue) { q.AddAfter(key, debounce) },
	}
}
