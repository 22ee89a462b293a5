package rollout

import (
	"slices"

	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"

	"github.com/spokelet/spokelet/internal/reconcile"
)

// concludeAddOn returns the add-on with its new status: its configuration, the progress of its works and, once they are
// done, the applied configuration. The applied configuration stays recorded when works fail later.
func concludeAddOn(f addOnFacts) *addonv1beta1.ManagedClusterAddOn {
	after := f.addon.DeepCopy()
	decided := configure(f)
	after.Status.ConfigReferences = slices.Clone(decided.references)
	if decided.configured != nil {
		reconcile.SetCondition(&after.Status.Conditions, *decided.configured, f.now)
	}
	condition := progress(f, decided.references)
	reconcile.SetCondition(&after.Status.Conditions, condition, f.now)
	if completed(condition) {
		for i := range after.Status.ConfigReferences {
			reference := &after.Status.ConfigReferences[i]
			reference.LastAppliedConfig = reference.DesiredConfig.DeepCopy()
		}
	}
	return after
}
