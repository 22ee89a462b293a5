package placement

import (
	"context"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/spokelet/spokelet/internal/reconcile"
)

// Reconcile updates the decisions of one Placement.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	begun, waits := r.Passes.Begin(req.NamespacedName, r.Clock.Now()), false
	defer func() {
		if !waits {
			r.leave(req)
		}
	}()
	f, in, err := r.observe(ctx, req.NamespacedName)
	f.begun = begun
	switch {
	case err != nil:
		return reconcile.Retry(err).Settle(f.now)
	case f.placement == nil:
		r.memory.forget(req.NamespacedName)
		r.Passes.Forget(req.NamespacedName)
		return ctrl.Result{}, nil
	}
	p := decide(f, in)
	if waits = !r.turns.Enter(req, p.length()); waits {
		return ctrl.Result{}, nil // its turn comes with a request
	}
	return r.carryOut(ctx, f, in, p).Settle(f.now)
}

// carryOut carries out a plan, as far as the API server confirms it.
func (r *Reconciler) carryOut(ctx context.Context, f facts, in interest, p plan) reconcile.Outcome {
	p, err := r.confirm(ctx, &f, in, p)
	if err != nil {
		return reconcile.FromError(err)
	}
	r.memory.noteOutside(f.key, p.outside)
	if p.frozen {
		return r.freeze(ctx, f, p)
	}
	return r.publish(ctx, f, p)
}

// publish carries out a plan, and reports it in the status.
func (r *Reconciler) publish(ctx context.Context, f facts, p plan) reconcile.Outcome {
	r.Passes.Doubt(f.key, p.selection.unknown)
	all, more, failed := r.act(ctx, f.key, p.layout.Slices)
	before, after := f.placement, f.placement.DeepCopy()
	after.Status = conclude(f, p, all, failed)
	r.memory.tell(f.key, &after.Status)
	changed, err := reconcile.PatchStatus(ctx, r.Client, before, after)
	if changed && err == nil {
		log.FromContext(ctx).Info("the placement decided", "clusters", after.Status.NumberOfSelectedClusters)
	}
	if failed == nil && !more && err == nil {
		r.Passes.End(f.key, f.begun)
	}
	outcome := reconcile.FromError(failed)
	if more {
		// Others have their turn, and the cache sees what was written.
		outcome = outcome.And(reconcile.DoneUntil(f.now.Add(batchPeriod)))
	}
	outcome = outcome.And(reconcile.FromError(client.IgnoreNotFound(err)))
	return outcome.And(reconcile.DoneUntil(p.selection.wake))
}

// freeze carries out a plan that keeps the decisions of a Placement, but for clusters that it may not have any more. It
// tells nothing about other clusters, so what was in doubt stays so.
func (r *Reconciler) freeze(ctx context.Context, f facts, p plan) reconcile.Outcome {
	switch {
	case f.undecoded != nil: // Nobody knows what it says, so it stays undecided.
	case f.orphaned:
		r.Passes.Forget(f.key)
	default:
		after := f.placement.DeepCopy()
		after.Status = conclude(f, p, false, nil)
		r.memory.tell(f.key, &after.Status)
		if _, err := reconcile.PatchStatus(ctx, r.Client, f.placement, after); err != nil {
			return reconcile.FromError(client.IgnoreNotFound(err))
		}
	}
	_, more, err := r.act(ctx, f.key, p.layout.Slices)
	if len(p.dropped) > 0 && err == nil {
		log.FromContext(ctx).Info("clusters left the sets of a placement that is not decided", "clusters", len(p.dropped))
	}
	if more {
		return reconcile.FromError(err).And(reconcile.DoneUntil(f.now.Add(batchPeriod)))
	}
	if err == nil && !f.orphaned && f.undecoded == nil {
		r.Passes.End(f.key, f.begun)
	}
	outcome := reconcile.FromError(err).And(reconcile.DoneUntil(p.selection.wake))
	if f.undecoded != nil {
		outcome = outcome.And(reconcile.Retry(f.undecoded))
	}
	return outcome
}

// leave ends a pass, and wakes those whose turn it is.
func (r *Reconciler) leave(req ctrl.Request) {
	for _, next := range r.turns.Leave(req) {
		r.queue.Add(next)
	}
}
