package install

import (
	"context"

	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/hub/fleet"
	"github.com/spokelet/spokelet/internal/addonapi"
	"github.com/spokelet/spokelet/internal/reconcile"
)

// Reconciler installs add-ons where Placements select clusters, and removes them where none does any more.
type Reconciler struct {
	// Client reads from the cache of the manager, and Live from the API server.
	Client client.Client
	Live   client.Reader
	// AddOns reads and writes add-ons.
	AddOns addonapi.Client
	// Recorder records an Event on a ClusterManagementAddOn about add-ons that are not removed; nil records none.
	Recorder events.EventRecorder
	// Clock is the clock of a pass.
	Clock clock.PassiveClock
	// Workers is how many add-ons are reconciled at the same time.
	Workers int
	// Placements knows what Placements have decided.
	Placements *fleet.Placements
	// Limit is how many clusters may lose an add-on at once without an edit that explains it; the zero Limit holds
	// nothing.
	Limit Limit
	// TrustAsOCM copies all annotations of a cluster about add-ons to its add-ons, its hosting cluster among them.
	TrustAsOCM bool

	memory memory
}

// Reconcile installs one add-on on one cluster when the request is the key of its ManagedClusterAddOn. A request
// without a namespace is the name of an add-on, which is removed from clusters that no placement selects.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	if req.Namespace == "" {
		return r.reconcileFleet(ctx, req.Name)
	}
	f, err := r.observe(ctx, req.NamespacedName)
	if err != nil {
		return reconcile.Retry(err).Settle(f.now)
	}
	p := decide(f)
	if p.unselected {
		r.memory.note(req.Name, req.Namespace, f.now)
	}
	if err := r.confirmCopied(ctx, f, p); err != nil {
		return reconcile.FromError(err).Settle(f.now)
	}
	return r.act(ctx, f, p).Settle(f.now)
}

// reconcileFleet removes one add-on from clusters that no placement selects.
func (r *Reconciler) reconcileFleet(ctx context.Context, name string) (ctrl.Result, error) {
	f, err := r.observeFleet(ctx, name)
	if err != nil {
		return reconcile.Retry(err).Settle(f.now)
	}
	switch {
	case f.cma == nil || !f.cma.GetDeletionTimestamp().IsZero() || !addonapi.Managed(f.cma):
		r.memory.forgetAddOn(name)
		return ctrl.Result{}, nil
	case !addonapi.StrategyOf(f.cma).ByPlacements:
		r.memory.forgetAddOn(name)
		return reconcile.FromError(r.annotate(ctx, f.cma, abandon(f.cma.GetAnnotations()))).Settle(f.now)
	}
	p := decideRemovals(f)
	if err := r.confirm(ctx, f, p); err != nil {
		return reconcile.FromError(err).Settle(f.now)
	}
	return r.actFleet(ctx, f, p).Settle(f.now)
}
