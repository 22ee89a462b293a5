package cluster

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/spokelet/spokelet/internal/reconcile"
)

// Reconcile reconciles one cluster. The request without a name reconciles the roles that all clusters share.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	if req.Name == "" {
		return r.reconcileShared(ctx).Settle(r.Clock.Now())
	}
	f, err := r.observe(ctx, req.Name)
	if err != nil {
		return reconcile.Retry(err).Settle(f.now)
	}
	p := decide(f)
	if err := r.confirm(ctx, f, p); err != nil {
		return reconcile.FromError(err).Settle(f.now)
	}
	if p.abandoned {
		log.FromContext(ctx).Info("removing a cluster that was never accepted and asks for no credential",
			"created", f.cluster.CreationTimestamp, "after", r.UnacceptedLife)
	}
	latest, failed := r.act(ctx, f, p)
	outcome := reconcile.FromError(failed).And(r.publish(ctx, f, latest, conclude(f, p, failed, latest)))
	outcome = outcome.And(reconcile.FromError(r.writeAddOnStatuses(ctx, p.unknownAddOns)))
	// A write that fails again and again backs off, and must not hold up that the cluster falls silent.
	return outcome.And(outcomeOf(p)).SettleIn(r.requests, req, f.now)
}

// publish writes the status of the cluster once; without a cluster there is none.
func (r *Reconciler) publish(ctx context.Context, f facts, before, after *clusterv1.ManagedCluster) reconcile.Outcome {
	if before == nil {
		return reconcile.Done()
	}
	changed, err := reconcile.PatchStatus(ctx, r.Client, before, after)
	if client.IgnoreNotFound(err) != nil {
		return reconcile.FromError(err)
	}
	if changed && err == nil {
		log.FromContext(ctx).Info("the cluster changed", "conditions", changedConditions(before, after))
		if fellSilent(before, after) {
			r.recordSilence(f)
		}
	}
	return reconcile.Done()
}

// recordSilence records an Event about the silent agent in the namespace of the cluster, if it exists.
func (r *Reconciler) recordSilence(f facts) {
	if r.Recorder == nil || f.namespace == nil || !f.namespace.DeletionTimestamp.IsZero() {
		return
	}
	// An Event about an object without a namespace would go to the namespace "default".
	about := &corev1.ObjectReference{
		APIVersion: clusterv1.GroupVersion.String(), Kind: "ManagedCluster",
		Namespace: f.name, Name: f.name, UID: f.cluster.UID,
	}
	r.Recorder.Eventf(about, nil, corev1.EventTypeWarning, "AvailableUnknown", "Expire",
		"The cluster is Unknown: %s", messageSilent)
}

// outcomeOf returns the outcome of a pass whose writes all succeeded.
func outcomeOf(p plan) reconcile.Outcome {
	switch {
	case p.refused != nil:
		return reconcile.Stalled(p.refused)
	case p.blocked != nil && (p.phase == phaseDeleting || p.phase == phaseGone):
		return reconcile.Retry(p.blocked)
	case p.blocked != nil || p.remaining != "":
		return reconcile.Waiting(p.wake)
	}
	return reconcile.DoneUntil(p.wake)
}

// reconcileShared keeps the shared roles as long as a cluster exists.
func (r *Reconciler) reconcileShared(ctx context.Context) reconcile.Outcome {
	shared, err := r.observeShared(ctx)
	if err != nil {
		return reconcile.Retry(err)
	}
	wanted, err := r.anyCluster(ctx)
	if err != nil {
		return reconcile.Retry(err)
	}
	steps := decideShared(shared, wanted)
	if !wanted && len(steps) > 0 {
		if err := r.confirmNoCluster(ctx); err != nil {
			return reconcile.FromError(err)
		}
	}
	return reconcile.FromError(r.runStages(ctx, [][]step{steps}))
}
