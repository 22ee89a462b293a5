package install

import (
	"context"

	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/internal/addonapi"
	"github.com/spokelet/spokelet/internal/reconcile"
)

// Reconciler installs add-ons where Placements select clusters.
type Reconciler struct {
	// Client reads from the cache of the manager.
	Client client.Client
	// AddOns reads and writes add-ons.
	AddOns addonapi.Client
	// Recorder records an Event on a ClusterManagementAddOn about add-ons that are not uninstalled; nil records none.
	Recorder events.EventRecorder
	// Clock is the clock of a pass.
	Clock clock.PassiveClock
	// Workers is how many add-ons are reconciled at the same time.
	Workers int
}

// Reconcile installs or uninstalls one add-on on one cluster; the request is the key of its ManagedClusterAddOn.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	f, err := r.observe(ctx, req.NamespacedName)
	if err != nil {
		return reconcile.Retry(err).Settle(f.now)
	}
	p := decide(f)
	outcome := reconcile.FromError(r.act(ctx, f, p))
	r.recordEvents(ctx, f, p)
	if p.notReady != nil || p.blocked != nil {
		outcome = outcome.And(reconcile.Waiting(p.wake))
	}
	return outcome.Settle(f.now)
}
