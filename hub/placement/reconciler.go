package placement

import (
	"context"

	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/spokelet/spokelet/internal/reconcile"
)

// Reconciler turns Placements into PlacementDecisions.
type Reconciler struct {
	// Client reads from the cache of the manager and writes.
	Client client.Client
	// Clock is the clock of a pass.
	Clock clock.PassiveClock
	// Workers is how many Placements are reconciled at the same time.
	Workers int

	memory memory
}

// Reconcile updates the decisions of one Placement.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	f, err := r.observe(ctx, req.NamespacedName)
	if err != nil {
		return reconcile.Retry(err).Settle(f.now)
	}
	if f.placement == nil {
		r.memory.forget(req.NamespacedName)
		return ctrl.Result{}, nil
	}
	in, err := r.observeFleet(ctx, req.NamespacedName, &f)
	if err != nil {
		return reconcile.Retry(err).Settle(f.now)
	}
	p := decide(f, in)
	more, failed := r.act(ctx, req.NamespacedName, p.layout.Slices)
	before, after := f.placement, f.placement.DeepCopy()
	conclude(f, p, !more && failed == nil, &after.Status)
	r.memory.tell(req.NamespacedName, &after.Status)
	changed, err := reconcile.PatchStatus(ctx, r.Client, before, after)
	if changed && err == nil {
		log.FromContext(ctx).Info("the placement decided", "clusters", after.Status.NumberOfSelectedClusters)
	}
	outcome := reconcile.FromError(failed)
	if more {
		// Others have their turn, and the cache sees what was written.
		outcome = outcome.And(reconcile.DoneUntil(f.now.Add(batchPeriod)))
	}
	outcome = outcome.And(reconcile.FromError(client.IgnoreNotFound(err)))
	return outcome.And(reconcile.DoneUntil(p.selection.wake)).Settle(f.now)
}
