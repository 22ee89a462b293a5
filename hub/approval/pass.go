package approval

import (
	"context"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/internal/reconcile"
)

// Reconcile judges one request.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	f, err := r.observe(ctx, req.Name)
	if err != nil {
		return reconcile.FromError(client.IgnoreNotFound(err)).Settle(f.now)
	}
	p := decide(f)
	n, outcome := conclude(f, p, r.act(ctx, f, p))
	return outcome.And(r.recordEvent(ctx, f, n)).And(r.comment(ctx, f, n)).Settle(f.now)
}
