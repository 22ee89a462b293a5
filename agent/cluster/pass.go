package cluster

import (
	"context"

	clusterv1 "open-cluster-management.io/api/cluster/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/internal/reconcile"
)

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
	if p.hosting != nil {
		outcome = outcome.And(reconcile.FromError(r.claimHosting(ctx, *p.hosting)))
	}
	if f.cluster == nil {
		return outcome.Settle(f.now)
	}
	return outcome.And(reconcile.FromError(r.publish(ctx, f, p, conclude(f, p, results)))).Settle(f.now)
}

// publish writes the status of the ManagedCluster.
func (r *Reconciler) publish(ctx context.Context, f facts, p plan, after *clusterv1.ManagedCluster) error {
	hub := client.WithFieldOwner(r.Hub.GetClient(), fieldManager)
	written, err := reconcile.PatchStatus(ctx, hub, f.cluster, after)
	if written && p.refresh && !p.withhold && sumsChange(f) {
		r.summed = f.now
	}
	if written && err == nil {
		r.recordEvent(ctx, f.cluster, after, f.now)
	}
	return err
}
