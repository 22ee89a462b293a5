package install

import (
	"context"

	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/spokelet/spokelet/internal/addonapi"
	"github.com/spokelet/spokelet/internal/reconcile"
)

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
		r.memory.note(req.NamespacedName, f.now)
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
	case !f.removes():
		r.memory.forgetAddOn(name)
		return reconcile.FromError(r.annotate(ctx, f.cma, abandon(f.cma.GetAnnotations()))).Settle(f.now)
	}
	p := decideRemovals(f)
	if err := r.confirm(ctx, f, p); err != nil {
		return reconcile.FromError(err).Settle(f.now)
	}
	return r.actFleet(ctx, f, p).Settle(f.now)
}
