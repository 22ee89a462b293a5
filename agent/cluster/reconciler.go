package cluster

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1alpha1 "open-cluster-management.io/api/cluster/v1alpha1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/spokelet/spokelet/internal/reconcile"
)

// debounce gathers the events of nodes and claims, which come in crowds, into one pass.
const debounce = 500 * time.Millisecond

// Reconciler writes the status of the ManagedCluster of this agent and steers its heartbeat.
type Reconciler struct {
	// Hub reads the ManagedCluster from HubCache and patches its status.
	Hub client.Client
	// HubCache watches the ManagedCluster named Cluster and needs to hold no other.
	HubCache cache.Cache
	// Spoke reads Nodes and ClusterClaims from SpokeCache.
	Spoke client.Reader
	// SpokeCache watches Nodes, with the transform StripNode, and ClusterClaims.
	SpokeCache cache.Cache
	// Cluster is the name of the cluster.
	Cluster string
	// NoClaims says that the spoke does not serve ClusterClaims: they are neither watched nor read.
	NoClaims bool
	// Claims says which claims are reported.
	Claims ClaimRules
	// Health tells how the API server of the spoke is.
	Health *Health
	// Heartbeat is steered by this reconciler; SetupWithManager adds it to the manager.
	Heartbeat *Heartbeat
	// Clock tells the time.
	Clock clock.PassiveClock
}

// SetupWithManager adds the heartbeat and the controller "agent.cluster" to mgr.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	if err := mgr.Add(r.Heartbeat); err != nil {
		return fmt.Errorf("adding the heartbeat: %w", err)
	}
	key := ctrl.Request{NamespacedName: types.NamespacedName{Name: r.Cluster}}
	b := ctrl.NewControllerManagedBy(mgr).Named("agent.cluster").WithOptions(reconcile.Options(1)).
		WatchesRawSource(source.Kind(r.HubCache, &clusterv1.ManagedCluster{},
			&handler.TypedEnqueueRequestForObject[*clusterv1.ManagedCluster]{})).
		WatchesRawSource(source.Kind(r.SpokeCache, &corev1.Node{}, gather[*corev1.Node](key), nodeChanged())).
		WatchesRawSource(r.Health.Traffic.bell.source(key)).
		WatchesRawSource(r.Heartbeat.bell.source(key))
	if !r.NoClaims {
		b = b.WatchesRawSource(source.Kind(r.SpokeCache, &clusterv1alpha1.ClusterClaim{},
			gather[*clusterv1alpha1.ClusterClaim](key)))
	}
	return b.Complete(r)
}

// Reconcile brings the heartbeat and the status of the ManagedCluster up to date.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	if req.Name != r.Cluster {
		return reconcile.Done().Settle(r.Clock.Now())
	}
	f, err := r.observe(ctx)
	if err != nil {
		if apierrors.IsNotFound(err) {
			r.act(plan{})
			return reconcile.Done().Settle(f.now)
		}
		return reconcile.FromError(err).Settle(f.now)
	}
	p := decide(f)
	r.act(p)
	_, err = reconcile.PatchStatus(ctx, r.Hub, f.cluster, conclude(f, p))
	return reconcile.FromError(err).And(reconcile.DoneUntil(p.wake)).Settle(f.now)
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
