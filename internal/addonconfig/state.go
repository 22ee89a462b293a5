package addonconfig

import (
	"fmt"

	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
)

// State is the observed state of one config.
type State struct {
	// Hash is the spec hash; empty unless the hub manager read the config.
	Hash string
	// Generation is metadata.generation, under the same condition.
	Generation int64
	// Missing means that the hub manager may read this kind and the config does not exist.
	Missing bool
	// Refused is why a config that exists is not used, with a remedy; empty when it is used. Clusters keep what they have.
	Refused string
	// Unread is why the hub manager does not read the config, with a remedy; empty when it does. Then the manager of the
	// add-on has to report the hash.
	Unread string
}

// States are the observed states of all configs that a decision may need.
type States map[addonv1beta1.AddOnConfig]State

// Inputs are the inputs of a Target.
type Inputs struct {
	// AddOn is the add-on on one cluster.
	AddOn *addonv1beta1.ManagedClusterAddOn
	// CMA is its ClusterManagementAddOn.
	CMA *addonv1beta1.ClusterManagementAddOn
	// Placement is the index of the placement that owns the cluster; -1 for none.
	Placement int
	// States has the state of every config of DesiredConfigs.
	States States
}

// Target is the configuration that the specs ask for.
type Target struct {
	// Desired are the configs, ordered.
	Desired []DesiredConfig
	// References are the references to them as in the status of the add-on, in the same order.
	References []addonv1beta1.ConfigReference
	// Missing describes the configs that do not exist or cannot be used, with the spec that names each.
	Missing []string
	// Waiting describes the configs whose hash is unknown, with what has to happen.
	Waiting []string
	// Unsupported describes the configs of a kind that the add-on does not support.
	Unsupported []string
	// AwaitsOwn reports whether one of Missing or Waiting is named by the spec of the add-on itself.
	AwaitsOwn bool
	// AwaitsRolled reports whether one of Waiting is named by another spec.
	AwaitsRolled bool
	// beneath are the references that the rollout would give of the kinds that the spec of the add-on itself names.
	beneath []addonv1beta1.ConfigReference
}

// NewTarget returns the configuration that the specs ask for. References keep the history that the status of the add-on
// has of the same config.
func NewTarget(in Inputs) Target {
	target := Target{Desired: DesiredConfigs(in.CMA, in.Placement, in.AddOn.Spec.Configs)}
	for _, desired := range target.Desired {
		state := in.States[desired.AddOnConfig]
		hash := in.hash(desired)
		target.References = append(target.References, in.reference(desired, state, hash))
		supported := SupportOf(in.AddOn, desired.ConfigGroupResource) != NotSupported
		awaited := len(target.Missing) + len(target.Waiting)
		switch {
		case hash == "" && !supported && (desired.Level == FromAddOn || !state.Missing && state.Refused == ""):
			// A user who writes the add-on of one cluster holds it by nothing that it would not use.
			target.Unsupported = append(target.Unsupported, Describe(desired.AddOnConfig))
		case state.Missing:
			target.Missing = append(target.Missing, fmt.Sprintf("%s does not exist (named by %s)",
				Describe(desired.AddOnConfig), desired.Source(in.CMA)))
		case state.Refused != "":
			target.Missing = append(target.Missing, fmt.Sprintf("%s (named by %s) cannot be used: %s",
				Describe(desired.AddOnConfig), desired.Source(in.CMA), state.Refused))
		case hash == "":
			target.Waiting = append(target.Waiting, fmt.Sprintf("the spec hash of %s (named by %s) is not known yet: %s",
				Describe(desired.AddOnConfig), desired.Source(in.CMA), state.Unread))
			target.AwaitsRolled = target.AwaitsRolled || desired.Level != FromAddOn
		}
		if desired.Level == FromAddOn && len(target.Missing)+len(target.Waiting) > awaited {
			target.AwaitsOwn = true
		}
	}
	target.beneath = in.beneath(target.Desired)
	return target
}

// beneath returns the references that the rollout would give of the kinds that the spec of the add-on itself names.
func (in Inputs) beneath(chosen []DesiredConfig) []addonv1beta1.ConfigReference {
	own := ownKinds(chosen)
	if len(own) == 0 { // as of nearly all add-ons
		return nil
	}
	var beneath []addonv1beta1.ConfigReference
	for _, desired := range DesiredConfigs(in.CMA, in.Placement, nil) {
		if own[desired.ConfigGroupResource] {
			beneath = append(beneath, in.reference(desired, in.States[desired.AddOnConfig], in.hash(desired)))
		}
	}
	return beneath
}

// hash returns the spec hash of a config; "" when it is unknown. The hash of a config that the hub manager does not
// read is the one that the manager of the add-on reported.
func (in Inputs) hash(desired DesiredConfig) string {
	state := in.States[desired.AddOnConfig]
	if state.Unread == "" {
		return state.Hash
	}
	switch desired.Level {
	case FromAddOn:
		return HashOf(desired.AddOnConfig, AddOnReferences(in.AddOn.Status.ConfigReferences))
	case FromPlacement:
		strategy := in.CMA.Spec.InstallStrategy.Placements[desired.Placement]
		for _, progression := range in.CMA.Status.InstallProgressions {
			if progression.PlacementRef == strategy.PlacementRef {
				return HashOf(desired.AddOnConfig, PlacementReferences(progression.ConfigReferences))
			}
		}
	case FromDefaults:
		return HashOf(desired.AddOnConfig, DefaultReferences(in.CMA.Status.DefaultConfigReferences))
	}
	return ""
}

// reference returns the reference to a config, with the history of the existing reference to the same config.
func (in Inputs) reference(desired DesiredConfig, state State, hash string) addonv1beta1.ConfigReference {
	reference := addonv1beta1.ConfigReference{
		ConfigGroupResource: desired.ConfigGroupResource,
		DesiredConfig:       &addonv1beta1.ConfigSpecHash{ConfigReferent: desired.ConfigReferent, SpecHash: hash},
	}
	for _, old := range in.AddOn.Status.ConfigReferences {
		if (Reference{old.ConfigGroupResource, old.DesiredConfig}).Is(desired.AddOnConfig) {
			reference.LastAppliedConfig = old.LastAppliedConfig.DeepCopy()
			reference.LastObservedGeneration = old.LastObservedGeneration
		}
	}
	if state.Unread == "" && !state.Missing {
		reference.LastObservedGeneration = state.Generation
	}
	return reference
}

// Rolled returns the references of a Target that a rollout controls: those of the defaults and of the placement. A
// config in the spec of one add-on concerns one cluster only, and applies at once.
func (t Target) Rolled() []addonv1beta1.ConfigReference {
	rolled := make([]addonv1beta1.ConfigReference, 0, len(t.References))
	for i, reference := range t.References {
		if t.Desired[i].Level != FromAddOn {
			rolled = append(rolled, reference)
		}
	}
	return rolled
}

// Admitted reports whether an add-on needs no admission for the target: it already has all references that a rollout
// controls, and no others.
func (t Target) Admitted(addOn *addonv1beta1.ManagedClusterAddOn) bool {
	return SameDesired(t.rolledOf(addOn.Status.ConfigReferences), t.Rolled())
}
