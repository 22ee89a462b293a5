package configure

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/spokelet/spokelet/hub/fleet"
	"github.com/spokelet/spokelet/internal/addonapi"
	"github.com/spokelet/spokelet/internal/addonconfig"
	"github.com/spokelet/spokelet/internal/causes"
	"github.com/spokelet/spokelet/internal/decode"
	"github.com/spokelet/spokelet/internal/gate"
	"github.com/spokelet/spokelet/internal/message"
	"github.com/spokelet/spokelet/internal/policies"
	"github.com/spokelet/spokelet/internal/reconcile"
)

// observe reads the facts about one add-on, which awaits the placements that are in doubt or is only read.
func (c *Configurer) observe(
	ctx context.Context, addOn *addonv1beta1.ManagedClusterAddOn, awaits bool,
) (facts, error) {
	f, err := c.observeSpecs(ctx, addOn, awaits)
	if err != nil || f.cma == nil {
		return f, err
	}
	for _, was := range addOn.Status.ConfigReferences {
		config := configOf(was)
		is := f.states[config]
		// One of the name that is created again has a generation of its own, so another content counts, too.
		other := was.DesiredConfig != nil && was.DesiredConfig.SpecHash != "" && was.DesiredConfig.SpecHash != is.Hash
		if is.Hash != "" && (other || is.Generation < was.LastObservedGeneration) {
			if err := c.Store.Confirm(ctx, config); err != nil {
				return f, err
			}
		}
	}
	if f.planned, f.admission = c.admission(f); f.planned {
		if err := c.observeFailed(ctx, &f); err != nil {
			return f, err
		}
	}
	if !f.target().Admitted(addOn) { // Also where it returns.
		if err := errors.Join(c.confirm(ctx, f.cma), c.confirmPolicy(ctx, f)); err != nil {
			return f, err
		}
	}
	return f, c.askGate(ctx, &f)
}

// observeSpecs reads what the specs ask for.
func (c *Configurer) observeSpecs(
	ctx context.Context, addOn *addonv1beta1.ManagedClusterAddOn, awaits bool,
) (facts, error) {
	f := facts{addOn: addOn, placement: -1}
	cma, err := c.AddOns.GetClusterManagementAddOn(ctx, addOn.Name)
	switch {
	case apierrors.IsNotFound(err):
		return f, nil
	case err != nil:
		return f, err
	}
	f.cma = cma
	owner, err := c.owner(ctx, client.ObjectKeyFromObject(addOn), placementsOf(cma), awaits)
	if err != nil {
		return f, err
	}
	f.placement, f.doubts = owner.Index, owner.Doubts
	configs := addonconfig.Wanted(cma, f.placement, addOn.Spec.Configs)
	if len(addOn.Spec.Configs) > 0 { // What the rollout would give in their place counts for its progress.
		configs = append(configs, addonconfig.Wanted(cma, f.placement, nil)...)
	}
	if f.states, err = c.Store.States(ctx, configs...); err != nil {
		return f, err
	}
	return f, c.observeUndone(ctx, &f)
}

// observeUndone finds out whether all clusters return from what the specs ask for. A policy that cannot be decoded
// begins nothing: the rollout, or the gate, holds what is not there.
func (c *Configurer) observeUndone(ctx context.Context, f *facts) error {
	var err error
	f.rules, err = c.Gates.Rules(ctx, f.addOn.Name)
	if decode.IsUnknown(err) {
		f.undecoded = err.Error()
		return nil
	}
	if err != nil || !f.rules.Undoes() || f.unselected() {
		return err
	}
	if how, is := f.allReturn(); is {
		return c.returns(ctx, f, how)
	}
	return nil
}

// observeFailed finds out whether the cluster returns from what it failed with.
func (c *Configurer) observeFailed(ctx context.Context, f *facts) error {
	if how, is := f.failedReturns(); is {
		return c.returns(ctx, f, how)
	}
	return nil
}

// returns finds out what the add-on returns to from what the specs ask for.
func (c *Configurer) returns(ctx context.Context, f *facts, how addonconfig.Undo) error {
	if !f.returns(how) {
		return nil
	}
	back := addonconfig.Return{From: f.undo.from, How: how, To: f.undo.to}
	lacks, err := c.Store.Lacks(ctx, f.addOn.Name, back)
	if lacks != "" && how.Failed && len(how.Completed) > 0 && err == nil { // What was there last counts no more.
		f.undo.to = how.Completed[0]
		back.To = f.undo.to
		lacks, err = c.Store.Lacks(ctx, f.addOn.Name, back)
	}
	if f.undo.kept = lacks; lacks != "" || err != nil {
		f.undo.active, f.undo.to = false, nil
	}
	return err
}

// askGate asks the gate of an add-on what it says of its dependencies and, where no rollout decides, whether it may
// begin. What has begun goes on.
func (c *Configurer) askGate(ctx context.Context, f *facts) error {
	if c.Gates == nil || !c.knowsTime() || !f.addOn.DeletionTimestamp.IsZero() {
		return nil
	}
	if f.unselected() {
		var err error
		f.stays, err = c.goesLater(ctx, f.addOn)
		return err
	}
	asks := f.asks()
	g, err := c.Gates.Gate(ctx, f.addOn.Name)
	if decode.IsUnknown(err) { // It begins nothing, and repairs and credentials go on.
		if f.undecoded = err.Error(); asks {
			f.admission = addonconfig.Admission{Reason: causes.WaitsForTurn + err.Error()}
		}
		return nil
	}
	if err != nil || !g.Depends() && (!asks || g.Open()) {
		return err
	}
	cluster, err := c.Gates.On(ctx, g, f.addOn.Namespace)
	if err != nil {
		return err
	}
	if f.degraded.Reason, f.degraded.Message = g.Degraded(cluster); asks {
		f.ask(g, cluster, c.Placements.Clock.Now())
	}
	return nil
}

// asks reports whether a gate says if the add-on may begin. Of one that returns from a content that was undone, it
// decides itself.
func (f *facts) asks() bool {
	asks := !f.planned && !f.target().Admitted(f.addOn)
	if asks && f.undo.content != "" && (f.undo.kept != "" || f.undo.from.Admitted(f.addOn)) {
		f.admission, asks = f.undo.admission(f.rules), false
	}
	return asks
}

// ask lets a gate decide about an add-on that does not have its target.
func (f *facts) ask(g gate.Gate, cluster gate.Cluster, now time.Time) {
	content := gate.NameOfTarget(f.addOn.Name, f.target())
	if v := g.Judge(cluster, content, now); v.Held != "" {
		f.admission, f.gateWake = addonconfig.Admission{Reason: v.Held}, v.Wake
	}
}

// goesLater returns what an unselected add-on waits for before it is uninstalled, which the installer decides.
func (c *Configurer) goesLater(ctx context.Context, addOn *addonv1beta1.ManagedClusterAddOn) (string, error) {
	order, err := c.Gates.Order(ctx, decode.LeaveOut)
	if err != nil {
		return "", err
	}
	others, err := c.Gates.Others(ctx, order, client.ObjectKeyFromObject(addOn))
	if err != nil {
		return "", err
	}
	if len(others.Hold) > 0 {
		return "; add-ons that depend on it are on the cluster and go first: " +
			message.List(others.Hold, maxListed, ", "), nil
	}
	g, err := c.Gates.Gate(ctx, addOn.Name)
	if decode.IsUnknown(err) || err == nil && !g.HasWindows() {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	cluster, err := c.Gates.Cluster(ctx, addOn.Namespace)
	if v := g.JudgeRemoval(cluster, time.Time{}, c.Placements.Clock.Now()); err == nil && v.Held != "" {
		return "; it waits for its windows: " + v.Held, nil
	}
	return "", err
}

// Has reports whether an add-on has the content that it is to have, or that is not known. Its status may not say yet
// that it is to have another one.
func (c *Configurer) Has(ctx context.Context, addOn *addonv1beta1.ManagedClusterAddOn) (bool, error) {
	f, err := c.observeSpecs(ctx, addOn, false)
	if err != nil || f.cma == nil || f.unselected() || !addonapi.Managed(f.cma) {
		return true, err
	}
	if f.returnedFrom(f.content()) { // It gets nothing else until a person says so.
		return true, nil
	}
	target := f.target()
	return len(target.Missing)+len(target.Waiting) > 0 || target.Admitted(addOn), nil
}

// configOf returns the configuration that a reference desires; one without a name if it desires none.
func configOf(reference addonv1beta1.ConfigReference) addonv1beta1.AddOnConfig {
	config := addonv1beta1.AddOnConfig{ConfigGroupResource: reference.ConfigGroupResource}
	if reference.DesiredConfig != nil {
		config.ConfigReferent = reference.DesiredConfig.ConfigReferent
	}
	return config
}

// version is a version of a ClusterManagementAddOn, as far as people write it, or of a policy, with what that
// remembers.
type version struct {
	uid        types.UID
	generation int64
	memory     string
}

// versionOf returns the version of a policy; that of one that is not in force is empty.
func versionOf(p *policies.AddOnPolicy) version {
	if p == nil || !p.DeletionTimestamp.IsZero() {
		return version{}
	}
	return version{p.UID, p.Generation, gate.Memory(p)}
}

// confirm returns an error, which is a lost race, if a ClusterManagementAddOn is not the one that the API server has: a
// cache that is behind would put add-ons back to what an earlier one named. Each version is asked for once.
func (c *Configurer) confirm(ctx context.Context, cma *addonv1beta1.ClusterManagementAddOn) error {
	cached := version{uid: cma.UID, generation: cma.Generation}
	if known, _ := c.confirmed.Get(cma.Name); c.Store.Live == nil || known == cached {
		return nil
	}
	live, err := reconcile.Get(ctx, c.Store.Live, client.ObjectKeyFromObject(cma),
		c.AddOns.MetadataOfClusterManagementAddOn())
	switch {
	case apierrors.IsForbidden(err): // The rights of an earlier version do not let us ask.
		return nil
	case err != nil:
		return err
	case live == nil || !fleet.SameSpec(live, cma):
		return reconcile.Behind(addonv1beta1.GroupName, "clustermanagementaddons", cma.Name)
	}
	c.confirmed.Put(cma.Name, cached)
	return nil
}

// confirmPolicy is confirm for the policy of an add-on: by a cache that is behind, it is not paused yet, or did not
// undo yet what it undid. Where the API server cannot say, the cache counts: what a policy there holds, it holds with a
// sentence.
func (c *Configurer) confirmPolicy(ctx context.Context, f facts) error {
	name, cached := f.addOn.Name, versionOf(f.rules.Policy())
	known, asked := c.rules.Get(name)
	if c.Gates == nil || c.Store.Live == nil || f.undecoded != "" || asked && known == cached {
		return nil
	}
	var all policies.AddOnPolicyList // There is no right to get one.
	err := c.Store.Live.List(ctx, &all, client.MatchingFields{metav1.ObjectNameField: name})
	var live version
	for i := range all.Items {
		if p := &all.Items[i]; p.Name == name {
			live = versionOf(p)
		}
	}
	switch {
	case meta.IsNoMatchError(err), apierrors.IsNotFound(err), apierrors.IsForbidden(err):
		log.FromContext(ctx).Error(err, "a policy cannot be confirmed any more; what was read of it before counts",
			"policy", name)
	case err != nil:
		return fmt.Errorf("confirming AddOnPolicy %s: %w", name, err)
	case live != cached:
		return reconcile.Behind(policies.GroupVersion().Group, "addonpolicies", name)
	}
	c.rules.Put(name, cached)
	return nil
}

// admission returns whether a rollout decides about an add-on, and what it decides.
func (c *Configurer) admission(f facts) (planned bool, decision addonconfig.Admission) {
	if !c.planned(f) {
		return false, addonconfig.Admission{Granted: true}
	}
	return true, c.Admission(f.addOn, f.target().Rolled())
}

// planned reports whether a rollout decides about an add-on. One that no placement owns, or whose placement rolls out
// to all clusters at once, is admitted without being planned, unless its policy may have it return to what it had.
func (c *Configurer) planned(f facts) bool {
	return c.Admission != nil && f.placement >= 0 && (f.rules.Undoes() ||
		addonconfig.Planned(f.cma.Spec.InstallStrategy.Placements[f.placement].RolloutStrategy))
}

// placementsOf returns the keys of the placements that install an add-on.
func placementsOf(cma *addonv1beta1.ClusterManagementAddOn) []types.NamespacedName {
	var keys []types.NamespacedName
	for _, placement := range addonconfig.PlacementsOf(cma) {
		keys = append(keys, types.NamespacedName(placement.PlacementRef))
	}
	return keys
}
