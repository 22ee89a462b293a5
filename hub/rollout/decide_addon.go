package rollout

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1alpha1 "open-cluster-management.io/api/cluster/v1alpha1"
	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/spokelet/spokelet/internal/names"
)

// Reasons of the condition Configured.
const (
	reasonConfigured    = "ConfigurationsConfigured"
	reasonNotConfigured = "ConfigurationsNotConfigured"
)

// addOnFacts are the inputs of the decision about one add-on.
type addOnFacts struct {
	now   time.Time
	addon *addonv1beta1.ManagedClusterAddOn
	cma   *addonv1beta1.ClusterManagementAddOn
	// placement is the index of the placement that owns the add-on; -1 for none.
	placement int
	// missingPlacements names the listed placements that do not exist; set only when no placement owns the add-on, because
	// a missing one may.
	missingPlacements []string
	found             configStates
	works             []*workv1.ManifestWork
	// worksErr is why the works could not be read.
	worksErr error
}

// configuration is the decision about the configuration of one add-on.
type configuration struct {
	references []addonv1beta1.ConfigReference
	// configured is the condition Configured; nil leaves it unchanged.
	configured *metav1.Condition
}

// configure decides the desired configuration of the add-on. If it cannot be determined, the add-on keeps its
// configuration, and the condition explains why.
func configure(f addOnFacts) configuration {
	wanted := wantedConfigs(f.cma, f.placement, f.addon.Spec.Configs)
	next := f.references(wanted)
	current := f.addon.Status.ConfigReferences
	blocked := f.blocked(wanted, next)
	waiting := f.waiting(wanted)
	switch {
	case !f.addon.DeletionTimestamp.IsZero() && (blocked != "" || len(waiting) > 0 || !sameConfigs(current, next)):
		// A pre-delete hook must not be lost because a config was deleted first, or because the placement no longer selects
		// the cluster.
		return configuration{references: current}
	case blocked != "":
		return configuration{references: current, configured: f.keptCondition(blocked)}
	case len(waiting) > 0:
		return configuration{references: next, configured: notConfigured(listed(waiting))}
	}
	return configuration{references: next, configured: &metav1.Condition{
		Type:    addonv1beta1.ManagedClusterAddOnConditionConfigured,
		Status:  metav1.ConditionTrue,
		Reason:  reasonConfigured,
		Message: f.success(wanted),
	}}
}

// blocked returns why the add-on must keep its configuration; "" when it need not.
func (f addOnFacts) blocked(wanted []wantedConfig, next []addonv1beta1.ConfigReference) string {
	switch {
	case f.unselected() && len(f.missingPlacements) > 0:
		return fmt.Sprintf("the configuration is kept as it is: ClusterManagementAddOn %s lists %s, which does not exist, "+
			"so it is unknown which configuration this cluster is to have", f.cma.Name, listed(f.missingPlacements))
	case f.unselected():
		return "the configuration is kept as it is: no placement of ClusterManagementAddOn " + f.cma.Name +
			" selects the cluster any more, so the add-on is about to be uninstalled"
	}
	if missing := f.missing(wanted); missing != "" {
		return missing
	}
	if strategy := f.strategy(); !supported(strategy) && !sameDesired(f.addon.Status.ConfigReferences, next) {
		return fmt.Sprintf("rollout strategy %s is not supported yet, so the configuration is kept as it is", strategy)
	}
	return ""
}

// missing lists the wanted configs that do not exist; "" when all exist.
func (f addOnFacts) missing(wanted []wantedConfig) string {
	var missing []string
	for _, r := range wanted {
		if f.found[r.AddOnConfig].missing {
			missing = append(missing, fmt.Sprintf("%s does not exist (asked for by %s)",
				describe(r.AddOnConfig), r.source(f.cma)))
		}
	}
	return listed(missing)
}

// unselected reports whether the add-on was installed by placements and none of them is known to select its cluster
// now. Until it is uninstalled or selected again, the defaults do not apply. They do apply to an add-on that a person
// created and no placement selects.
func (f addOnFacts) unselected() bool {
	if f.placement >= 0 || len(placementsOf(f.cma)) == 0 {
		return false
	}
	return len(f.missingPlacements) > 0 || f.addon.Labels[names.LabelInstalledBy] == names.InstalledByPlacement
}

// keptCondition returns the condition of an add-on that keeps its configuration. An unselected add-on that was
// configured stays configured: its configuration is not wrong.
func (f addOnFacts) keptCondition(message string) *metav1.Condition {
	condition := notConfigured(message)
	was := meta.IsStatusConditionTrue(f.addon.Status.Conditions, addonv1beta1.ManagedClusterAddOnConditionConfigured)
	if f.unselected() && was {
		condition.Status, condition.Reason = metav1.ConditionTrue, reasonConfigured
	}
	return condition
}

// waiting lists the wanted configs whose hash the add-on's own manager has yet to report.
func (f addOnFacts) waiting(wanted []wantedConfig) []string {
	var waiting []string
	for _, r := range wanted {
		if f.hash(r) == "" && !f.unsupported(r.ConfigGroupResource) {
			waiting = append(waiting, fmt.Sprintf("the spec hash of %s is not known yet (asked for by %s): the manager of the "+
				"add-on has to report it, because the hub reads AddOnTemplates and AddOnDeploymentConfigs only",
				describe(r.AddOnConfig), r.source(f.cma)))
		}
	}
	return waiting
}

// success returns the message for a configuration that is determined.
func (f addOnFacts) success(wanted []wantedConfig) string {
	if len(wanted) == 0 {
		return "no configuration is asked for"
	}
	var without []string
	for _, r := range wanted {
		if f.hash(r) == "" {
			without = append(without, describe(r.AddOnConfig))
		}
	}
	message := fmt.Sprintf("%d of %d configurations are determined", len(wanted)-len(without), len(wanted))
	if len(without) > 0 {
		message += ", the others are of a kind that the add-on does not support: " + listed(without)
	}
	return message
}

// references returns the references to the wanted configs in their order, with the history of the existing references
// to the same configs.
func (f addOnFacts) references(wanted []wantedConfig) []addonv1beta1.ConfigReference {
	var next []addonv1beta1.ConfigReference
	for _, r := range wanted {
		entry := addonv1beta1.ConfigReference{
			ConfigGroupResource: r.ConfigGroupResource,
			DesiredConfig: &addonv1beta1.ConfigSpecHash{
				ConfigReferent: r.ConfigReferent,
				SpecHash:       f.hash(r),
			},
		}
		for _, old := range f.addon.Status.ConfigReferences {
			if (reference{old.ConfigGroupResource, old.DesiredConfig}).is(r.AddOnConfig) {
				entry.LastAppliedConfig = old.LastAppliedConfig.DeepCopy()
				entry.LastObservedGeneration = old.LastObservedGeneration
			}
		}
		if found := f.found[r.AddOnConfig]; !found.foreign {
			entry.LastObservedGeneration = found.generation
		}
		next = append(next, entry)
	}
	return next
}

func (f addOnFacts) hash(r wantedConfig) string {
	return f.found.hash(r, f.cma, f.addon)
}

// strategy returns the rollout strategy that applies to the add-on.
func (f addOnFacts) strategy() clusterv1alpha1.RolloutType {
	if f.placement < 0 {
		return clusterv1alpha1.All
	}
	return f.cma.Spec.InstallStrategy.Placements[f.placement].RolloutStrategy.Type
}

// supported reports whether this version implements a rollout strategy.
func supported(strategy clusterv1alpha1.RolloutType) bool {
	return strategy == "" || strategy == clusterv1alpha1.All
}

// unsupported reports whether the add-on is known not to support a kind of config. Nothing is known before its
// registration.
func (f addOnFacts) unsupported(resource addonv1beta1.ConfigGroupResource) bool {
	stated := len(f.addon.Status.SupportedConfigs) > 0 || meta.FindStatusCondition(
		f.addon.Status.Conditions, addonv1beta1.ManagedClusterAddOnRegistrationApplied) != nil
	return stated && !slices.Contains(f.addon.Status.SupportedConfigs, resource)
}

// sameDesired reports whether two lists of references name the same configs with the same content, in any order.
func sameDesired(a, b []addonv1beta1.ConfigReference) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if !slices.ContainsFunc(b, func(other addonv1beta1.ConfigReference) bool {
			return a[i].DesiredConfig != nil && other.DesiredConfig != nil &&
				a[i].ConfigGroupResource == other.ConfigGroupResource && *a[i].DesiredConfig == *other.DesiredConfig
		}) {
			return false
		}
	}
	return true
}

// sameConfigs reports whether two lists of references name the same configs, of any content.
func sameConfigs(a, b []addonv1beta1.ConfigReference) bool {
	return slices.EqualFunc(a, b, func(x, y addonv1beta1.ConfigReference) bool {
		return x.DesiredConfig != nil && y.DesiredConfig != nil && x.ConfigGroupResource == y.ConfigGroupResource &&
			x.DesiredConfig.ConfigReferent == y.DesiredConfig.ConfigReferent
	})
}

func notConfigured(message string) *metav1.Condition {
	return &metav1.Condition{
		Type:    addonv1beta1.ManagedClusterAddOnConditionConfigured,
		Status:  metav1.ConditionFalse,
		Reason:  reasonNotConfigured,
		Message: strings.TrimSpace(message),
	}
}
