package cluster

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/spokelet/spokelet/internal/reconcile"
)

// lookAgain is the pause between two looks at nodes that are not known yet.
const lookAgain = 5 * time.Second

// facts is all that a pass knows.
type facts struct {
	// now is the instant of the pass.
	now time.Time
	// cluster is the ManagedCluster, a copy; nil when there is none.
	cluster *clusterv1.ManagedCluster
	// health is what the probes of the spoke say; it is only looked at once the cluster is accepted.
	health health
	// nextLook is when the next pass is due whatever happens until then: the spoke is to be probed, its nodes are to be
	// looked at again, or the period is over; zero when nothing asks for it.
	nextLook time.Time
	// lastBeat is when the hub stored the last heartbeat, by the clock of the hub where it says so; zero when there was
	// none.
	lastBeat time.Time
	// resources are the sums over the nodes; nil when the nodes could not be read.
	resources *resources
	// claims are what is to be reported; nil when they could not be read, empty when there are none.
	claims []clusterv1.ManagedClusterClaim
	// namespaces are those that carry the label of the hub; none when they are not known.
	namespaces []namespace
}

// observe reads the facts. Only a ManagedCluster that cannot be read is an error; what else could not be read is
// unknown.
func (r *Reconciler) observe(ctx context.Context) (facts, error) {
	f := facts{now: r.Clock.Now(), cluster: &clusterv1.ManagedCluster{}}
	f.namespaces, _ = r.namespaces.List()
	err := r.Hub.GetClient().Get(ctx, types.NamespacedName{Name: r.Cluster}, f.cluster)
	switch {
	case apierrors.IsNotFound(err):
		f.cluster = nil
		return f, nil
	case err != nil:
		return f, fmt.Errorf("reading ManagedCluster %s: %w", r.Cluster, err)
	case !accepted(f.cluster):
		return f, nil
	}
	f.health, f.nextLook = r.Health.observe(ctx, f.now)
	if r.Period > 0 {
		f.nextLook = reconcile.Earliest(f.nextLook, f.now.Add(r.Period))
	}
	f.lastBeat = r.Heartbeat.Renewed()
	f.claims = r.observeClaims()
	if !f.health.well() {
		return f, nil
	}
	if f.resources, err = r.observeNodes(ctx); err != nil {
		log.FromContext(ctx).Error(err, "cannot list the nodes, capacity stays as it is")
	}
	if f.resources == nil {
		f.nextLook = reconcile.Earliest(f.nextLook, f.now.Add(lookAgain))
	}
	return f, nil
}

// observeClaims returns the claims to report, nil as long as some are unknown, or all are left out.
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

// observeNodes sums up the nodes; nil as long as their first list is on its way, because a read would wait for it.
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

// accepted reports whether the hub has accepted the cluster and so given the agent its rights.
func accepted(cluster *clusterv1.ManagedCluster) bool {
	return meta.IsStatusConditionTrue(cluster.Status.Conditions, clusterv1.ManagedClusterConditionHubAccepted)
}
