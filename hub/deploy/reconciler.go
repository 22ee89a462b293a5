package deploy

import (
	"cmp"
	"context"

	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"

	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/internal/reconcile"

	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/hub/addon"
	"github.com/spokelet/spokelet/hub/deploy/works"
	"github.com/spokelet/spokelet/internal/addonapi"
)

// Name is the name of the controller.
const Name = "hub.deploy"

// defaultWorkers is the default of Reconciler.Workers.
const defaultWorkers = 8

// Reconciler deploys the agents of add-ons.
type Reconciler struct {
	// Client reads clusters, ManifestWorks and RoleBindings of the hub from a cache, and writes ManifestWorks.
	Client client.Client
	// Bindings writes RoleBindings. The hub manager writes them as names.ServiceAccountAddons, so that the API server
	// refuses every role that no administrator granted to that account.
	Bindings client.Client
	// Live reads from the API server, which happens only when the cache is or may be behind.
	Live client.Reader
	// AddOns reads and writes add-ons.
	AddOns addonapi.Client
	// Agents finds the agents of add-ons.
	Agents addon.Lookup
	// Configurer decides the configurations of add-ons.
	Configurer addon.Configurer
	// Watch adds the watches of all that the Configurer looks at.
	Watch func(*builder.Builder) *builder.Builder
	// Recorder records Events on add-ons about removed finalizers; nil records none.
	Recorder events.EventRecorder
	// Home is the namespace of the hub manager; empty means names.NamespaceHub.
	Home string
	// Account is the ServiceAccount, as namespace/name, as which Bindings writes, for messages; empty means
	// names.ServiceAccountAddons in Home.
	Account string
	// Clock is the clock of a pass.
	Clock clock.PassiveClock
	// Workers is how many add-ons are reconciled at the same time; zero means 8.
	Workers int
	// Version is the version of the code that renders; empty means that of the build.
	Version string

	verified verified
}

// Reconcile deploys the agent of one add-on on one cluster.
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	f, err := r.observe(ctx, request.NamespacedName)
	if err == nil && !f.relevant {
		r.verified.set(request.NamespacedName, works.Sum{})
	}
	if err == nil && f.deleting != nil {
		return r.reconcileDeletion(ctx, f.deleting)
	}
	if err != nil || f.addOn == nil {
		return ctrl.Result{}, err
	}
	if !f.relevant {
		after := f.addOn.DeepCopy()
		f.record(after, f.works, false)
		_, err = r.AddOns.PatchAddOnStatus(ctx, f.addOn, after)
		return reconcile.FromError(client.IgnoreNotFound(err)).Settle(f.now)
	}
	p := decide(f)
	r.verified.set(request.NamespacedName, p.verified)
	if f.addOn, err = r.recordAdmission(ctx, f, p); err != nil {
		return reconcile.FromError(client.IgnoreNotFound(err)).Settle(f.now)
	}
	done := r.act(ctx, f, p)
	if done.addOn != nil {
		f.addOn = done.addOn
	}
	after := conclude(f, p, done)
	_, err = r.AddOns.PatchAddOnStatus(ctx, f.addOn, after)
	return outcomeOf(f, p, done, err).Settle(f.now)
}

// reconcileDeletion handles an add-on that is being deleted. Without finalizers there is nothing to do: Kubernetes
// deletes the objects that the add-on owns.
func (r *Reconciler) reconcileDeletion(
	ctx context.Context, addOn *addonv1beta1.ManagedClusterAddOn,
) (ctrl.Result, error) {
	now := r.Clock.Now()
	if len(addOn.Finalizers) == 0 {
		return ctrl.Result{}, nil
	}
	f, err := r.observeDeletion(ctx, addOn)
	if err != nil {
		return reconcile.Retry(err).Settle(now)
	}
	p := decideDeletion(f)
	return r.actOnDeletion(ctx, f, p).Settle(now)
}

// account returns the ServiceAccount as which bindings are written, as namespace/name.
func (r *Reconciler) account() string {
	return cmp.Or(r.Account, cmp.Or(r.Home, names.NamespaceHub)+"/"+names.ServiceAccountAddons)
}
