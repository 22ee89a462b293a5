package configure

import (
	"cmp"
	"context"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"

	"github.com/spokelet/spokelet/hub/addon"
	"github.com/spokelet/spokelet/internal/addonapi"
	"github.com/spokelet/spokelet/internal/addonconfig"
	"github.com/spokelet/spokelet/internal/reconcile"
)

// Follower determines the configuration of add-ons as the hub manager of another process decided it. It takes the
// references from the status of the add-on, and their contents from where they are stored or, while the hash is still
// that of the present content, from the configurations themselves. It records nothing but what a hub manager leaves to
// the manager of an add-on: the observed generations, and the hashes of the configurations in the spec of an add-on.
// The API server confirms a content that changed before that.
//
// The agent of a cluster may write the references. So only configurations that a spec names are read; of any other
// one, only a content that the hub manager stored for this add-on counts.
type Follower struct {
	// Configurer has what both need; its Admission and its Client are not used.
	*Configurer
	// Supports reports whether an add-on understands a kind of configuration. Others are not read.
	Supports func(addOn string, kind addonv1beta1.ConfigGroupResource) bool
}

var _ addon.Configurer = (*Follower)(nil)

// followed are the inputs of the decision about an add-on that another process configures.
type followed struct {
	addOn *addonv1beta1.ManagedClusterAddOn
	// cma is nil when it does not exist.
	cma *addonv1beta1.ClusterManagementAddOn
	// states are those of the configurations in the spec of the add-on of kinds that it understands.
	states addonconfig.States
}

// Configure implements addon.Configurer.
func (c *Follower) Configure(
	ctx context.Context, addOn *addonv1beta1.ManagedClusterAddOn,
) (addon.Configuration, error) {
	f := followed{addOn: addOn}
	var result addon.Configuration
	cma, err := c.AddOns.GetClusterManagementAddOn(ctx, addOn.Name)
	switch {
	case err == nil:
		f.cma = cma
	case !apierrors.IsNotFound(err):
		return result, err
	}
	own := slices.DeleteFunc(slices.Clone(addOn.Spec.Configs), func(config addonv1beta1.AddOnConfig) bool {
		return !c.Supports(addOn.Name, config.ConfigGroupResource)
	})
	if f.states, err = c.Store.States(ctx, own...); err != nil {
		return result, err
	}
	for _, config := range f.changed() {
		if err := c.Store.Confirm(ctx, config); err != nil {
			return result, err
		}
	}
	result.Record = f.record
	result.Choice.Desired = f.named()
	held, wait := f.held()
	if wait != "" {
		result.Err = &addon.NotReadyError{Message: wait}
		return result, nil
	}
	result.Choice.Held, result.Choice.Precedence = held, c.Precedence
	for _, config := range addonconfig.ChosenBy(addOn.Status.ConfigReferences) {
		entry, err := c.content(ctx, f, config)
		switch {
		case addon.IsNotReady(err):
			result.Choice.Configs, result.Err = nil, err
			return result, nil
		case err != nil:
			return addon.Configuration{}, err
		}
		result.Choice.Configs = append(result.Choice.Configs, entry)
	}
	return result, nil
}

// content reads one configuration that an add-on runs with. The error is a NotReadyError while the content of the
// reference is not known.
func (c *Follower) content(ctx context.Context, f followed, config addonconfig.Chosen) (addon.ChosenConfig, error) {
	entry := addon.ChosenConfig{ConfigGroupResource: config.ConfigGroupResource, ConfigSpecHash: config.ConfigSpecHash}
	if !c.Supports(f.addOn.Name, config.ConfigGroupResource) {
		return entry, nil // Nothing is rendered from it.
	}
	read := c.Store.Kept
	if f.names(config.Config()) {
		read = c.Store.Content
	}
	object, err := read(ctx, f.addOn.Name, config)
	if err != nil {
		return entry, err
	}
	if object == nil {
		return entry, c.unknownContent(ctx, f, config)
	}
	entry.Object = object
	return entry, nil
}

// unknownContent returns the error about a reference whose content is not known.
func (c *Follower) unknownContent(ctx context.Context, f followed, config addonconfig.Chosen) error {
	if !f.names(config.Config()) {
		return contentUnknown(config, "no spec names it any more")
	}
	states, err := c.Store.States(ctx, config.Config())
	if err != nil {
		return err
	}
	switch state := states[config.Config()]; {
	case state.Refused != "":
		return &addon.NotReadyError{Message: addonconfig.Describe(config.Config()) + " cannot be used: " + state.Refused}
	case state.Unread != "":
		return &addon.NotReadyError{Message: addonconfig.Describe(config.Config()) + " cannot be read: " + state.Unread}
	case state.Missing:
		return &addon.NotReadyError{Message: addonconfig.Describe(config.Config()) + " does not exist"}
	}
	held, _ := f.held()
	return contentUnknown(config, held)
}

// named returns the configurations that the specs name.
func (f followed) named() []addonv1beta1.AddOnConfig {
	if f.cma == nil {
		return f.addOn.Spec.Configs
	}
	return slices.Concat(f.addOn.Spec.Configs, addonconfig.NamedBy(f.cma))
}

func (f followed) names(config addonv1beta1.AddOnConfig) bool {
	return slices.Contains(f.named(), config)
}

// held returns why the hub manager keeps the add-on from the configuration of the specs, and why nothing may be
// rendered yet; "" for neither. Of an add-on that no hub manager configures, nothing is awaited.
func (f followed) held() (held, wait string) {
	if f.cma == nil {
		return "there is no ClusterManagementAddOn " + f.addOn.Name + ", which defines what the add-on runs with", ""
	}
	if !addonapi.Managed(f.cma) {
		return "", ""
	}
	configured := meta.FindStatusCondition(f.addOn.Status.Conditions, addonv1beta1.ManagedClusterAddOnConditionConfigured)
	switch {
	case configured == nil:
		return "", "waiting for the hub manager: it has not configured the add-on yet (condition Configured)"
	case configured.Status == metav1.ConditionTrue:
		return "", ""
	case len(f.addOn.Status.ConfigReferences) == 0:
		return "", "waiting for the hub manager: " + cmp.Or(configured.Message, configured.Reason)
	}
	return cmp.Or(configured.Message, configured.Reason), ""
}

// record writes what a hub manager leaves to the manager of the add-on.
func (f followed) record(after *addonv1beta1.ManagedClusterAddOn, _ addon.Progress) {
	for i := range after.Status.ConfigReferences {
		reference := &after.Status.ConfigReferences[i]
		if state, known := f.reported(*reference); known {
			reference.DesiredConfig.SpecHash, reference.LastObservedGeneration = state.Hash, state.Generation
		}
	}
}

// changed returns the configurations of which record writes something else than the status says. A cache that is behind
// would have the add-on go back to an earlier content, so each is confirmed before that.
func (f followed) changed() []addonv1beta1.AddOnConfig {
	var all []addonv1beta1.AddOnConfig
	for _, was := range f.addOn.Status.ConfigReferences {
		is, known := f.reported(was)
		if known && (is.Hash != was.DesiredConfig.SpecHash || is.Generation != was.LastObservedGeneration) {
			all = append(all, configOf(was))
		}
	}
	return all
}

// reported returns the state that a reference is to have, if it is of the spec of the add-on, and known.
func (f followed) reported(reference addonv1beta1.ConfigReference) (addonconfig.State, bool) {
	if reference.DesiredConfig == nil {
		return addonconfig.State{}, false
	}
	state := f.states[configOf(reference)]
	return state, state.Hash != ""
}

// Watch adds to a controller of add-ons the watches of all that decides their configuration.
func (c *Follower) Watch(b *builder.Builder) *builder.Builder {
	b = b.Watches(c.AddOns.WatchedClusterManagementAddOn(),
		handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, o client.Object) []ctrl.Request {
			return c.addOnsBy(ctx, addonapi.IndexName, o.GetName())
		}), builder.WithPredicates(instructionsChanged()))
	if c.Store.Reads() {
		// A content may appear in the cache after the reference to it.
		b = b.Watches(&appsv1.ControllerRevision{},
			handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, o client.Object) []ctrl.Request {
				return c.addOnsBy(ctx, addonapi.IndexName, addonconfig.AddOnOf(o))
			}), builder.WithPredicates(reconcile.CreatedOrDeleted()))
	}
	return c.watchConfigs(b)
}
