package configure

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/spokelet/spokelet/hub/addon"
	"github.com/spokelet/spokelet/internal/addonapi"
	"github.com/spokelet/spokelet/internal/addonconfig"
	"github.com/spokelet/spokelet/internal/objectwatch"
)

// Configurer decides the configuration of each add-on. Index must be called before the manager starts.
type Configurer struct {
	// AddOns reads add-ons.
	AddOns addonapi.Client
	// Client reads placements and decisions from the cache.
	Client client.Client
	// Store reads configurations and keeps their contents.
	Store *addonconfig.Store
	// Admission admits add-ons to a new configuration; nil admits all at once.
	Admission func(addOn, cluster string, target []addonv1beta1.ConfigReference) Admission
	// Changed sends the configurations of other kinds that changed; nil sends none.
	Changed <-chan event.TypedGenericEvent[objectwatch.Ref]
}

var _ addon.Configurer = (*Configurer)(nil)

// Configure implements addon.Configurer. The configuration of an add-on without a ClusterManagementAddOn is the one
// that it has: its pre-delete hook may still have to run.
func (c *Configurer) Configure(
	ctx context.Context, addOn *addonv1beta1.ManagedClusterAddOn,
) (addon.Configuration, error) {
	f, err := c.observe(ctx, addOn)
	if err != nil {
		return addon.Configuration{}, err
	}
	if f.cma == nil {
		return c.orphaned(ctx, addOn)
	}
	decided := decide(f)
	if decided.held == "" && f.storeErr == nil {
		if f.storeErr = c.store(ctx, addOn.Name, decided.target); f.storeErr != nil {
			decided = decide(f)
		}
	}
	desired := decided.target.Desired
	var result addon.Configuration
	result.Choice, result.Err = c.choice(ctx, addOn.Name, decided.references, desired, decided.held)
	for _, desired := range desired {
		result.Choice.Desired = append(result.Choice.Desired, desired.AddOnConfig)
	}
	if result.Err != nil && !addon.IsNotReady(result.Err) {
		return addon.Configuration{}, result.Err
	}
	if addonapi.Managed(f.cma) && !decided.undecided {
		result.Record = func(after *addonv1beta1.ManagedClusterAddOn, p addon.Progress) {
			facts := worksFacts{works: p.Works, nothing: p.Nothing, rollingOut: p.RollingOut, err: p.Err}
			record(f, decided, after, facts, p.Now)
		}
		result.Admitted = f.newlyAdmitted(decided)
	}
	return result, nil
}

// orphaned returns the configuration of an add-on without a ClusterManagementAddOn.
func (c *Configurer) orphaned(
	ctx context.Context, addOn *addonv1beta1.ManagedClusterAddOn,
) (addon.Configuration, error) {
	var result addon.Configuration
	result.Choice, result.Err = c.choice(ctx, addOn.Name, addOn.Status.ConfigReferences, nil,
		"there is no ClusterManagementAddOn "+addOn.Name+", which defines what the add-on runs with")
	if result.Err != nil && !addon.IsNotReady(result.Err) {
		return addon.Configuration{}, result.Err
	}
	return result, nil
}

// store stores the contents of the target that a rollout controls, before any status names them.
func (c *Configurer) store(ctx context.Context, addOn string, target addonconfig.Target) error {
	for _, config := range chosen(target.Rolled()) {
		if err := c.Store.Keep(ctx, addOn, config); err != nil {
			return err
		}
	}
	return nil
}

// named returns the configurations that the specs of the ClusterManagementAddOn and of all add-ons name, and the
// contents that add-ons are to run with. Add-ons without a ClusterManagementAddOn run with stored contents only.
func (c *Configurer) named(
	ctx context.Context, name string,
) ([]addonv1beta1.AddOnConfig, map[addonconfig.Chosen]bool, error) {
	addOns, err := c.AddOns.ListAddOns(ctx, client.MatchingFields{addonapi.IndexName: name})
	if err != nil {
		return nil, nil, err
	}
	var named []addonv1beta1.AddOnConfig
	desired := map[addonconfig.Chosen]bool{}
	for _, a := range addOns {
		named = append(named, a.Spec.Configs...)
		for _, content := range chosen(a.Status.ConfigReferences) {
			desired[content] = true
		}
	}
	cma, err := c.AddOns.GetClusterManagementAddOn(ctx, name)
	switch {
	case apierrors.IsNotFound(err):
		return nil, desired, nil
	case err != nil:
		return nil, nil, err
	}
	return append(named, addonconfig.NamedBy(cma)...), desired, nil
}
