package hashes

import (
	"iter"
	"slices"

	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"

	"github.com/spokelet/spokelet/internal/addonconfig"
)

// facts are the inputs of the decision about one ClusterManagementAddOn.
type facts struct {
	cma *addonv1beta1.ClusterManagementAddOn
	// states are those of the configurations of kinds that the add-on understands, but for those in unconfirmed.
	states addonconfig.States
	// unconfirmed is why the states of some that changed are unknown: the API server has not confirmed them.
	unconfirmed error
}

// conclude returns the ClusterManagementAddOn with the present hashes.
func conclude(f facts) *addonv1beta1.ClusterManagementAddOn {
	after := f.cma.DeepCopy()
	for kind, desired := range references(after) {
		if state := f.states[configOf(kind, desired)]; state.Hash != "" {
			desired.SpecHash = state.Hash
		}
	}
	return after
}

// changed returns the configurations whose hash is not the reported one, each once.
func changed(f facts) []addonv1beta1.AddOnConfig {
	var all []addonv1beta1.AddOnConfig
	for kind, desired := range references(f.cma) {
		config := configOf(kind, desired)
		state := f.states[config]
		if state.Hash != "" && state.Hash != desired.SpecHash && !slices.Contains(all, config) {
			all = append(all, config)
		}
	}
	return all
}

// references returns the references to configurations in the status of a ClusterManagementAddOn, with their kinds.
func references(
	cma *addonv1beta1.ClusterManagementAddOn,
) iter.Seq2[addonv1beta1.ConfigGroupResource, *addonv1beta1.ConfigSpecHash] {
	return func(yield func(addonv1beta1.ConfigGroupResource, *addonv1beta1.ConfigSpecHash) bool) {
		for _, reference := range cma.Status.DefaultConfigReferences {
			if reference.DesiredConfig != nil && !yield(reference.ConfigGroupResource, reference.DesiredConfig) {
				return
			}
		}
		for _, progression := range cma.Status.InstallProgressions {
			for _, reference := range progression.ConfigReferences {
				if reference.DesiredConfig != nil && !yield(reference.ConfigGroupResource, reference.DesiredConfig) {
					return
				}
			}
		}
	}
}

// configOf returns the configuration of a reference.
func configOf(
	kind addonv1beta1.ConfigGroupResource, desired *addonv1beta1.ConfigSpecHash,
) addonv1beta1.AddOnConfig {
	return addonv1beta1.AddOnConfig{ConfigGroupResource: kind, ConfigReferent: desired.ConfigReferent}
}
