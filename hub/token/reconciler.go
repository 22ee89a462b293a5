package token

import (
	"context"

	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/internal/addonapi"
	"github.com/spokelet/spokelet/internal/reconcile"
)

// defaultWorkers is the default of Reconciler.Workers.
const defaultWorkers = 4

// Reconciler keeps the token infrastructure of add-ons.
type Reconciler struct {
	// Client reads clusters, ServiceAccounts, Roles and RoleBindings from a cache, and writes them. The cache needs to
	// contain only those with the labels of the infrastructure.
	Client client.Client
	// Live reads from the API server, which happens only when a name is taken or something may be lost.
	Live client.Reader
	// AddOns reads and writes add-ons.
	AddOns addonapi.Client
	// Clock is the clock of a pass.
	Clock clock.PassiveClock
	// Workers is how many add-ons are reconciled at the same time; zero means 4.
	Workers int
}

// Reconcile reconciles the token infrastructure of one add-on on one cluster.
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	f, err := r.observe(ctx, r.Client, request.NamespacedName)
	if err != nil {
		return ctrl.Result{}, err
	}
	p := decide(f)
	if p.destroys() {
		// A cache may show an earlier add-on, driver or acceptance, and the tokens of a deleted ServiceAccount are void.
		if f, err = r.observe(ctx, r.Live, request.NamespacedName); err != nil {
			return ctrl.Result{}, err
		}
		p = decide(f)
	}
	done := r.act(ctx, f, p)
	return r.publish(ctx, f, p, done).And(outcomeOf(f, done)).And(reconcile.FromError(f.unknown)).Settle(f.now)
}
