package cluster

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/internal/reconcile"
)

// goneRetry is when the hub is asked again whether there is a ManagedCluster that the cache does not have.
const goneRetry = time.Minute

// nodesRetry is the time between two attempts to read the nodes before their first list.
const nodesRetry = 5 * time.Second

// observe reads the facts. It fails only if the ManagedCluster cannot be read; other facts that cannot be read are
// unknown.
func (r *Reconciler) observe(ctx context.Context) (facts, error) {
	f := facts{now: r.Clock.Now(), summed: r.summed, cluster: &clusterv1.ManagedCluster{}}
	f.namespaces, _ = r.namespaces.List()
	err := r.Hub.GetClient().Get(ctx, types.NamespacedName{Name: r.Cluster}, f.cluster)
	switch {
	case apierrors.IsNotFound(err):
		f.cluster = nil
		if f.gone, f.absent = r.isGone(ctx); !f.gone {
			f.wake = f.now.Add(goneRetry)
		}
		return f, nil
	case err != nil:
		return f, fmt.Errorf("reading ManagedCluster %s: %w", r.Cluster, err)
	case !accepted(f.cluster):
		return f, nil
	}
	f.health, f.wake = r.Health.observe(ctx, f.now)
	if r.Period > 0 {
		f.wake = reconcile.Earliest(f.wake, f.now.Add(r.Period))
	}
	f.lastHeartbeat = r.Heartbeat.Renewed()
	f.claims = r.observeClaims()
	f.hosting, f.hosts = r.HostingCluster, r.observeHosting()
	if !f.health.healthy() {
		return f, nil
	}
	if f.resources, err = r.observeNodes(ctx); err != nil {
		log.FromContext(ctx).Error(err, "cannot list the nodes, the reported capacity stays")
	}
	if f.resources == nil {
		f.wake = reconcile.Earliest(f.wake, f.now.Add(nodesRetry))
	}
	return f, nil
}

// isGone reports whether the hub says, without a cache, that the ManagedCluster does not exist, and why the agent has
// none. A hub that does not answer, or that does not serve the kind, has not said so.
func (r *Reconciler) isGone(ctx context.Context) (gone bool, why string) {
	err := r.Hub.GetAPIReader().Get(ctx, types.NamespacedName{Name: r.Cluster}, &clusterv1.ManagedCluster{})
	switch {
	case err == nil:
		return false, ""
	case reconcile.ObjectGone(err):
		return true, fmt.Sprintf("the hub has no ManagedCluster %s: it was deleted, or the hub was restored to an"+
			" earlier state; create it with hubAcceptsClient: true, or remove the agent", r.Cluster)
	}
	return false, fmt.Sprintf("the agent cannot read ManagedCluster %s: %v", r.Cluster, err)
}

// observeClaims returns the claims to report; nil while some are unknown, or when claims are disabled.
func (r *Reconciler) observeClaims() []clusterv1.ManagedClusterClaim {
	var lists [2][]claim
	some := false
	for i, kind := range []*optionalKind{r.claims, r.properties} {
		if kind == nil {
			continue
		}
		var known bool
		if lists[i], known = kind.claims.List(); !known {
			return nil
		}
		some = true
	}
	if !some {
		return nil
	}
	return append([]clusterv1.ManagedClusterClaim{}, r.Claims.report(lists[0], lists[1])...)
}

// observeHosting returns the value of the claim on the cluster of the agent, empty without one; nil while that is not
// known.
func (r *Reconciler) observeHosting() *string {
	if r.claims == nil {
		return nil
	}
	claims, known := r.claims.claims.List()
	if version, looked := r.claims.version(); !known || !looked || version == "" {
		return nil
	}
	value := ""
	for _, c := range claims {
		if c.name == names.ClaimHostingCluster {
			value = c.value
		}
	}
	return &value
}

// observeNodes sums up the nodes; nil before their first list, because a read would wait for it.
func (r *Reconciler) observeNodes(ctx context.Context) (*resources, error) {
	informer, err := r.Spoke.GetCache().GetInformer(ctx, &corev1.Node{}, cache.BlockUntilSynced(false))
	if err != nil {
		return nil, fmt.Errorf("watching the nodes: %w", err)
	}
	if !informer.HasSynced() {
		return nil, nil
	}
	var nodes corev1.NodeList
	if err := r.Spoke.GetCache().List(ctx, &nodes); err != nil {
		return nil, fmt.Errorf("listing the nodes: %w", err)
	}
	total := sum(nodes.Items)
	return &total, nil
}
