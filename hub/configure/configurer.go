package configure

import (
	"context"
	"errors"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/spokelet/spokelet/hub/addon"
	"github.com/spokelet/spokelet/hub/fleet"
	"github.com/spokelet/spokelet/internal/addonapi"
	"github.com/spokelet/spokelet/internal/addonconfig"
	"github.com/spokelet/spokelet/internal/gate"
	"github.com/spokelet/spokelet/internal/kept"
	"github.com/spokelet/spokelet/internal/objectwatch"
	"github.com/spokelet/spokelet/internal/reconcile"
)

// Configurer decides the configuration of each add-on. Index must be called before the manager starts.
type Configurer struct {
	// AddOns reads add-ons.
	AddOns addonapi.Client
	// Client reads placements and decisions from the cache.
	Client client.Client
	// Store reads configurations and keeps their contents.
	Store *addonconfig.Store
	// Placements knows what placements have decided; needed where add-ons are installed by placements.
	Placements *fleet.Placements
	// Admission admits add-ons to a new configuration; nil admits all at once.
	Admission func(addOn metav1.Object, target []addonv1beta1.ConfigReference) addonconfig.Admission
	// Gates says whether clusters may begin to change where no rollout decides that; nil lets all.
	Gates *gate.Reader
	// Precedence says which of several configurations of one kind counts.
	Precedence addon.Precedence
	// Changed sends the configurations of other kinds that changed; nil sends none.
	Changed <-chan event.TypedGenericEvent[objectwatch.Ref]

	// awaiting is remembered as soon as Placements are watched; nil before.
	awaiting *awaiting
	// confirmed is the last version of each ClusterManagementAddOn, by its name, that the API server had when asked.
	confirmed kept.Map[string, version]
	// rules are the same of each AddOnPolicy; one that does not exist has no version.
	rules kept.Map[string, version]
	// uses are remembered as soon as changes of add-ons are noted; nil before.
	uses *uses
}

var _ addon.Configurer = (*Configurer)(nil)

// Configure implements addon.Configurer. The configuration of an add-on without a ClusterManagementAddOn is the one
// that it has: its pre-delete hook may still have to run.
func (c *Configurer) Configure(
	ctx context.Context, addOn *addonv1beta1.ManagedClusterAddOn,
) (addon.Configuration, error) {
	return c.configure(ctx, addOn, true)
}

// Reading returns a Configurer that decides the same and stores no content, for reconcilers that ask what an add-on may
// have. What it has is stored before any status says so.
func (c *Configurer) Reading() addon.Configurer { return reading{c} }

// reading is a Configurer that stores nothing.
type reading struct{ *Configurer }

// Configure implements addon.Configurer.
func (r reading) Configure(
	ctx context.Context, addOn *addonv1beta1.ManagedClusterAddOn,
) (addon.Configuration, error) {
	return r.configure(ctx, addOn, false)
}

func (c *Configurer) configure(
	ctx context.Context, addOn *addonv1beta1.ManagedClusterAddOn, stores bool,
) (addon.Configuration, error) {
	var lost, others error
	if stores {
		lost, others = c.Store.Restore(ctx, addOn.Name, addonconfig.ChosenBy(addOn.Status.ConfigReferences))
	}
	f, err := c.observe(ctx, addOn, stores)
	if err != nil {
		return addon.Configuration{}, errors.Join(err, lost, others)
	}
	f.storeErr = errors.Join(f.storeErr, lost)
	if f.cma == nil {
		result, err := c.orphaned(ctx, addOn)
		result.Unstored = errors.Join(lost, others)
		return result, err
	}
	decided := decide(f)
	if stores && decided.gets && f.storeErr == nil {
		if f.storeErr = c.store(ctx, addOn.Name, decided); f.storeErr != nil {
			decided = decide(f)
		}
	}
	var result addon.Configuration
	result.Choice, result.Err = c.choice(ctx, addOn.Name, decided)
	result.Choice.Undo = f.undo.active
	for _, desired := range decided.target.Desired {
		result.Choice.Desired = append(result.Choice.Desired, desired.AddOnConfig)
	}
	if result.Err != nil && !addon.IsNotReady(result.Err) {
		return addon.Configuration{}, result.Err
	}
	result.Recheck, result.Unstored = decided.recheck, errors.Join(f.storeErr, others)
	if addonapi.Managed(f.cma) && !decided.undecided {
		if at := f.programAt(decided); c.knowsTime() && c.Placements.Clock.Now().Before(at) {
			result.Recheck = reconcile.Earliest(result.Recheck, at)
		}
		result.Record = func(after *addonv1beta1.ManagedClusterAddOn, p addon.Progress) {
			record(f, decided, after, p)
		}
		result.Admitted = f.newlyAdmitted(decided)
	}
	return result, nil
}

// knowsTime reports whether there is a clock: what is only rendered from files needs none.
func (c *Configurer) knowsTime() bool { return c.Placements != nil && c.Placements.Clock != nil }

// orphaned returns the configuration of an add-on without a ClusterManagementAddOn. Its own spec still names some.
func (c *Configurer) orphaned(
	ctx context.Context, addOn *addonv1beta1.ManagedClusterAddOn,
) (addon.Configuration, error) {
	own := make([]addonconfig.DesiredConfig, 0, len(addOn.Spec.Configs))
	for _, config := range addOn.Spec.Configs {
		own = append(own, addonconfig.DesiredConfig{AddOnConfig: config, Level: addonconfig.FromAddOn})
	}
	var result addon.Configuration
	result.Choice, result.Err = c.choice(ctx, addOn.Name, configuration{
		named: own, target: addonconfig.Target{Desired: own}, references: addOn.Status.ConfigReferences,
		held: "there is no ClusterManagementAddOn " + addOn.Name + ", which defines what the add-on runs with",
	})
	if result.Err != nil && !addon.IsNotReady(result.Err) {
		return addon.Configuration{}, result.Err
	}
	return result, nil
}

// store stores the contents of the target, before any status names them: a rollout goes back to them, and pre-delete
// hooks are rendered from them when the configuration is deleted with the add-on.
// Nothing is stored that only the agent names.
func (c *Configurer) store(ctx context.Context, addOn string, decided configuration) error {
	for _, config := range addonconfig.ChosenBy(decided.target.References) {
		if !isNamed(decided.named, config.Config()) && !decided.how.Has(config) {
			continue
		}
		if err := c.Store.Keep(ctx, addOn, config); err != nil {
			return err
		}
	}
	return nil
}

// Rehearse returns an add-on as the pass of a configurer leaves it that has no clients. The first placement owns its
// cluster. progress returns what is known of its works after the configuration in the given references is decided.
func (c *Configurer) Rehearse(
	cma *addonv1beta1.ClusterManagementAddOn, addOn *addonv1beta1.ManagedClusterAddOn, states addonconfig.States,
	progress func([]addonv1beta1.ConfigReference) addon.Progress,
) *addonv1beta1.ManagedClusterAddOn {
	after, _ := c.RehearseGated(Rehearsal{CMA: cma, AddOn: addOn, States: states, Progress: progress})
	return after
}

// Rehearsal is what the pass of a configurer knows of an add-on.
type Rehearsal struct {
	CMA    *addonv1beta1.ClusterManagementAddOn
	AddOn  *addonv1beta1.ManagedClusterAddOn
	States addonconfig.States
	// Gate says whether the add-on may begin to change where no rollout decides, and Cluster is what it knows of the
	// cluster at the instant Now.
	Gate    gate.Gate
	Cluster gate.Cluster
	Now     time.Time
	// Progress returns what is known of its works after the configuration in the given references is decided.
	Progress func([]addonv1beta1.ConfigReference) addon.Progress
}

// RehearseGated is Rehearse with a gate. It returns when time alone may change the decision, too; zero for never.
func (c *Configurer) RehearseGated(r Rehearsal) (after *addonv1beta1.ManagedClusterAddOn, recheck time.Time) {
	f := facts{addOn: r.AddOn, cma: r.CMA, states: r.States, rules: r.Gate}
	if len(placementsOf(r.CMA)) == 0 {
		f.placement = -1
	}
	if how, is := f.allReturn(); is {
		f.returns(how)
	}
	if f.planned, f.admission = c.admission(f); f.planned {
		if how, is := f.failedReturns(); is {
			f.returns(how)
		}
	}
	if f.degraded.Reason, f.degraded.Message = r.Gate.Degraded(r.Cluster); f.asks() {
		f.ask(r.Gate, r.Cluster, r.Now)
	}
	decided := decide(f)
	after = r.AddOn.DeepCopy()
	if !decided.undecided {
		record(f, decided, after, r.Progress(decided.references))
	}
	return after, decided.recheck
}
