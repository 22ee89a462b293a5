package deploy

import (
	"context"

	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/hub/addon"
	"github.com/spokelet/spokelet/internal/addonapi"
)

// Name is the name of the controller.
const Name = "hub.deploy"

// defaultWorkers is how many add-ons are worked on at the same time unless stated.
const defaultWorkers = 8

// Reconciler deploys the agents of add-ons.
type Reconciler struct {
	// Client reads clusters, ManifestWorks and RoleBindings of the hub from a cache, and writes ManifestWorks.
	Client client.Client
	// Bindings writes RoleBindings in the name of names.ServiceAccountAddons, so that the API server refuses every role
	// that no administrator granted to that account.
	Bindings client.Client
	// Live reads the hub without a cache, which happens only when the cache turned out to be behind.
	Live client.Reader
	// AddOns reads and writes add-ons.
	AddOns addonapi.Client
	// Agents finds the agents of add-ons.
	Agents addon.Lookup
	// Recorder tells on add-ons that are being deleted that finalizers went; nil tells nobody.
	Recorder events.EventRecorder
	// Home is the namespace of the hub manager; empty means names.NamespaceHub.
	Home string
	// Clock tells the instant of a pass.
	Clock clock.PassiveClock
	// Workers is how many add-ons are worked on at the same time; zero means 8.
	Workers int
}

// Reconcile brings one add-on on one cluster closer to what its agent asks for.
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	f, err := r.observe(ctx, request.NamespacedName)
	if err == nil && f.leaving != nil {
		return r.leave(ctx, f.leaving)
	}
	if err != nil || !f.relevant {
		return ctrl.Result{}, err
	}
	p := decide(f)
	done := r.act(ctx, p)
	after := conclude(f, p, done)
	_, err = r.AddOns.PatchAddOnStatus(ctx, f.addOn, after)
	return settle(f, p, done, err).Settle(f.now)
}
