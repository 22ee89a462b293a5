package work

import (
	"context"

	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/spokelet/spokelet/agent/work/watch"
	"github.com/spokelet/spokelet/internal/reconcile"
)

// Reconcile makes one pass over a work.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	crowded := false
	defer func() {
		if crowded {
			return
		}
		for _, work := range r.turns.Leave(req) {
			r.wake(watch.Owner{Name: work.Name})
		}
	}()
	f, err := r.observe(ctx, req.Name)
	if crowded = f.crowded; crowded {
		return ctrl.Result{}, nil // its turn comes with a request
	}
	if err != nil {
		return reconcile.FromError(err).Settle(f.now)
	}
	return r.follow(ctx, f).SettleIn(r.queues.works, req, f.now)
}

// follow reads what the phase of a work needs, does what it demands, and brings the copy up to date.
func (r *Reconciler) follow(ctx context.Context, f *facts) reconcile.Outcome {
	phase := f.phase()
	if phase == phaseApply || phase == phaseOffline {
		var err error
		if f.manifests, err = r.readManifests(ctx, f); err != nil {
			return reconcile.FromError(err)
		}
	}
	r.checkHub(ctx, f)
	phase = f.phase()
	defer func() { r.counts.pass(phase, r.Clock.Since(f.now)) }()
	if phase == phaseApply || phase == phaseKeep {
		if err := r.recall(ctx, f); err != nil {
			return reconcile.FromError(err)
		}
	}
	kept := f.copyKnowsMore()
	r.invalidateCopy(f, phase)
	outcome := r.pass(ctx, f, phase)
	if kept {
		r.invalidateCopy(f, phase)
	}
	r.enqueueCopy(f, phase)
	return outcome
}

// pass does what the phase of a work demands.
func (r *Reconciler) pass(ctx context.Context, f *facts, phase phase) reconcile.Outcome {
	switch phase {
	case phaseUnknown:
	case phaseOffline:
		return r.applyOffline(ctx, f)
	case phaseGone:
		r.forget(f)
	case phaseAbandon:
		outcome, _ := r.deleteObjects(ctx, f)
		if f.applied == nil {
			r.forget(f)
		}
		return outcome
	case phaseStale:
		return r.catchUp(ctx, f)
	case phaseKeep:
		return r.keepUnanswered(ctx, f)
	case phaseDelete:
		return r.deleteWork(ctx, f)
	case phaseRestart:
		return r.restart(ctx, f)
	case phaseApply:
		return r.apply(ctx, f)
	}
	return reconcile.Outcome{}
}
