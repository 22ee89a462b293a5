package clusterset

import (
	"context"

	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/internal/reconcile"
)

// Reconciler writes the status of ManagedClusterSets.
type Reconciler struct {
	// Client reads from the cache of the manager and writes.
	Client client.Client
	// Clock is the clock of a pass.
	Clock clock.PassiveClock
	// Workers is how many sets are reconciled at the same time.
	Workers int
}

// Reconcile updates the status of one set.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	f, err := r.observe(ctx, req.Name)
	if err != nil || f.set == nil {
		return reconcile.Retry(err).Settle(f.now)
	}
	after := f.set.DeepCopy()
	conclude(f, &after.Status)
	_, err = reconcile.PatchStatus(ctx, r.Client, f.set, after)
	return reconcile.FromError(client.IgnoreNotFound(err)).Settle(f.now)
}
