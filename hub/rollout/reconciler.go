package rollout

import (
	"context"

	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/spokelet/spokelet/internal/addonapi"
	"github.com/spokelet/spokelet/internal/reconcile"
)

// Reconciler reconciles the configuration and the progress of add-ons. Index must be called before the manager starts.
type Reconciler struct {
	// AddOns reads and writes add-ons.
	AddOns addonapi.Client
	// Client reads placements, decisions and works from the cache.
	Client client.Client
	// Clock is the clock of a pass.
	Clock clock.PassiveClock
	// Workers is how many add-ons are reconciled at the same time.
	Workers int

	// configs reads configs from the cache as unstructured objects.
	configs client.Reader
	hashes  hashes
}

// reconcileAddOn updates the configuration and the progress of one add-on.
func (r *Reconciler) reconcileAddOn(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	now := r.Clock.Now()
	facts, err := r.observeAddOn(ctx, req.NamespacedName, now)
	if facts == nil {
		return reconcile.FromError(err).Settle(now)
	}
	after := concludeAddOn(*facts)
	changed, err := r.AddOns.PatchAddOnStatus(ctx, facts.addon, after)
	if changed {
		log.FromContext(ctx).V(1).Info("recorded configuration and progress", "progressing", progressing(after).Message)
	}
	outcome := reconcile.FromError(client.IgnoreNotFound(err))
	return outcome.And(reconcile.Retry(facts.worksErr)).Settle(now)
}

// reconcilePlan updates the status of one ClusterManagementAddOn.
func (r *Reconciler) reconcilePlan(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	now := r.Clock.Now()
	facts, err := r.observePlan(ctx, req.Name, now)
	if facts == nil {
		return reconcile.FromError(err).Settle(now)
	}
	after, recheck := concludePlan(*facts)
	changed, err := r.AddOns.PatchClusterManagementAddOnStatus(ctx, facts.cma, after)
	if changed {
		log.FromContext(ctx).V(1).Info("recorded progress of placements")
	}
	outcome := reconcile.FromError(client.IgnoreNotFound(err))
	return outcome.And(reconcile.DoneUntil(recheck)).Settle(now)
}
