package work

import (
	"context"

	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/internal/reconcile"
)

// Reconciler deletes complete ManifestWorks when their time to live is over.
type Reconciler struct {
	// Works lists, watches and deletes ManifestWorks without a cache.
	Works client.WithWatch
	// Clock is the clock of a pass.
	Clock clock.PassiveClock
	// Workers is how many works are deleted at the same time.
	Workers int

	finished finishedWorks
}

// Reconcile deletes one work if it is due, and otherwise returns when it is.
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	now := r.Clock.Now()
	work, known := r.finished.Get(request.NamespacedName)
	switch {
	case !known:
		return reconcile.Done().Settle(now)
	case now.Before(work.due):
		return reconcile.Waiting(work.due).Settle(now)
	}
	return reconcile.FromError(r.remove(ctx, request.NamespacedName, work)).Settle(now)
}
