package install

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/spokelet/spokelet/internal/addonapi"
	"github.com/spokelet/spokelet/internal/reconcile"
)

// Reconciler installs add-ons where Placements select clusters.
type Reconciler struct {
	// Client reads from the cache of the manager.
	Client client.Client
	// AddOns reads and writes add-ons.
	AddOns addonapi.Client
	// Recorder tells on a ClusterManagementAddOn why an add-on is kept; nil tells nobody.
	Recorder events.EventRecorder
	// Clock tells the time.
	Clock clock.PassiveClock
	// Workers is how many add-ons have a pass running at the same time.
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
	r.tell(ctx, f, p)
	if p.waits != nil || p.kept != nil {
		outcome = outcome.And(reconcile.Waiting(p.wake))
	}
	return outcome.Settle(f.now)
}

// act does what the plan says.
func (r *Reconciler) act(ctx context.Context, f facts, p plan) error {
	switch {
	case p.create != nil:
		if err := r.AddOns.CreateAddOn(ctx, p.create); err != nil {
			return err
		}
		log.FromContext(ctx).Info("installed the add-on")
	case p.update != nil:
		_, err := r.AddOns.PatchAddOn(ctx, f.addon, p.update)
		return client.IgnoreNotFound(err)
	case p.remove:
		if err := r.AddOns.DeleteAddOn(ctx, f.addon); err != nil {
			return client.IgnoreNotFound(err)
		}
		log.FromContext(ctx).Info("uninstalled the add-on: no placement selects the cluster")
	}
	return nil
}

// tell says on the ClusterManagementAddOn why an add-on is kept. The text is the same for all clusters, so that they
// make one Event.
func (r *Reconciler) tell(ctx context.Context, f facts, p plan) {
	if p.waits != nil {
		log.FromContext(ctx).V(1).Info("the add-on waits to be installed", "reason", p.waits.Error())
	}
	if p.kept == nil || !p.wake.IsZero() {
		return
	}
	log.FromContext(ctx).V(1).Info("the add-on is kept", "reason", p.kept.Error())
	if r.Recorder != nil {
		r.Recorder.Eventf(f.management, nil, corev1.EventTypeWarning, "AddOnKept", "Uninstall",
			"Add-ons on clusters that no placement selects are kept: %s", p.kept.Error())
	}
}
