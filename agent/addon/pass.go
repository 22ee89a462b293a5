package addon

import (
	"context"

	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/spokelet/spokelet/internal/reconcile"
)

// Reconcile does one pass for one add-on.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	facts, err := r.observe(ctx, req.Name)
	if err != nil {
		return reconcile.FromError(err).Settle(facts.now)
	}
	r.observeSnapshot(ctx, &facts)
	r.observeWorkloads(ctx, &facts)
	plan := decide(facts)
	results := r.serve(ctx, facts, plan)
	r.tellEnds(req.Name, results)
	removeErr := r.remove(ctx, facts, plan, results)
	r.watch.want(req.Name, withWaited(plan, results)...)
	r.requests.Await(req, awaited(results)...)
	publishErr := r.publish(ctx, facts, plan, results)
	outcome := outcomeOf(ctx, plan, results, removeErr, publishErr)
	if outcome.Class() != reconcile.ClassStalled { // A person has to act there, and an event tells that.
		outcome = outcome.And(facts.lookAtClock(plan))
	}
	return outcome.Settle(facts.now)
}
