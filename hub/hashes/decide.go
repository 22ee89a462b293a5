package hashes

import (
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"

	"github.com/spokelet/spokelet/internal/addonconfig"
)

// facts are the inputs of the decision about one ClusterManagementAddOn.
type facts struct {
	cma *addonv1beta1.ClusterManagementAddOn
	// states are those of the configurations of kinds that the add-on understands.
	states addonconfig.States
}

// conclude returns the ClusterManagementAddOn with the present hashes.
func conclude(f facts) *addonv1beta1.ClusterManagementAddOn {
	after := f.cma.DeepCopy()
	for i := range after.Status.DefaultConfigReferences {
		reference := &after.Status.DefaultConfigReferences[i]
		f.update(reference.ConfigGroupResource, reference.DesiredConfig)
	}
	for i := range after.Status.InstallProgressions {
		references := after.Status.InstallProgressions[i].ConfigReferences
		for j := range references {
			f.update(references[j].ConfigGroupResource, references[j].DesiredConfig)
		}
	}
	return after
}

// update sets the hash of a reference, if it is known.
func (f facts) update(kind addonv1beta1.ConfigGroupResource, desired *addonv1beta1.ConfigSpecHash) {
	if desired == nil {
		return
	}
	config := addonv1beta1.AddOnConfig{ConfigGroupResource: kind, ConfigReferent: desired.ConfigReferent}
	if state := f.states[config]; state.Hash != "" {
		desired.SpecHash = state.Hash
	}
}
