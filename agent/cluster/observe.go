package cluster

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1alpha1 "open-cluster-management.io/api/cluster/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// facts is all that a pass knows.
type facts struct {
	// now is the instant of the pass.
	now time.Time
	// cluster is the ManagedCluster, a copy.
	cluster *clusterv1.ManagedCluster
	// health is what the probes of the spoke say; it is only looked at once the cluster is accepted.
	health health
	// nextProbe is when the spoke is to be probed again, zero when nothing asks for it.
	nextProbe time.Time
	// lastBeat is the last heartbeat that the hub has stored, zero when there was none.
	lastBeat time.Time
	// resources are the sums over the nodes; nil when the nodes could not be read.
	resources *resources
	// claims are what is to be reported; nil when they could not be read, empty when there are none.
	claims []clusterv1.ManagedClusterClaim
}

// observe reads the facts. Only a ManagedCluster that cannot be read is an error; what else could not be read is
// unknown.
func (r *Reconciler) observe(ctx context.Context) (facts, error) {
	f := facts{now: r.Clock.Now(), cluster: &clusterv1.ManagedCluster{}}
	if err := r.Hub.Get(ctx, types.NamespacedName{Name: r.Cluster}, f.cluster); err != nil {
		return f, fmt.Errorf("reading ManagedCluster %s: %w", r.Cluster, err)
	}
	if !accepted(f.cluster) {
		return f, nil
	}
	f.health, f.nextProbe = r.Health.observe(ctx, f.now)
	f.lastBeat = r.Heartbeat.Renewed()
	logger := log.FromContext(ctx)
	var nodes corev1.NodeList
	if err := r.Spoke.List(ctx, &nodes); err != nil {
		logger.Error(err, "cannot list the nodes, capacity stays as it is")
	} else {
		total := sum(nodes.Items)
		f.resources = &total
	}
	var claims clusterv1alpha1.ClusterClaimList
	switch err := r.listClaims(ctx, &claims); {
	case err != nil:
		logger.Error(err, "cannot list the claims, they stay as they are")
	default:
		f.claims = append([]clusterv1.ManagedClusterClaim{}, r.Claims.report(claims.Items)...)
	}
	return f, nil
}

// listClaims lists the ClusterClaims; a spoke without their CRD has none.
func (r *Reconciler) listClaims(ctx context.Context, claims *clusterv1alpha1.ClusterClaimList) error {
	if r.NoClaims {
		return nil
	}
	if err := r.Spoke.List(ctx, claims); err != nil && !meta.IsNoMatchError(err) {
		return fmt.Errorf("listing ClusterClaims: %w", err)
	}
	return nil
}

// accepted tells whether the hub has accepted the cluster and so given the agent its rights.
func accepted(cluster *clusterv1.ManagedCluster) bool {
	return meta.IsStatusConditionTrue(cluster.Status.Conditions, clusterv1.ManagedClusterConditionHubAccepted)
}
