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

// addOnFacts is all that is needed to decide on one add-on.
type addOnFacts struct {
	now   time.Time
	addon *addonv1beta1.ManagedClusterAddOn
	cma   *addonv1beta1.ClusterManagementAddOn
	// placement is the index of the placement that owns the add-on, -1 when none does.
	placement int
	// missingPlacements names the placements that are listed but do not exist, when none owns the add-on: one of them may.
	missingPlacements []string
	found             configStates
	works             []*workv1.ManifestWork
	// worksErr is why the works could not be read.
	worksErr error
}

// configuration is what was decided on the configuration of one add-on.
type configuration struct {
	references []addonv1beta1.ConfigReference
	// configured is the condition Configured; nil leaves it as it is.
	configured *metav1.Condition
}

// configure decides which configuration the add-on is to have. Where that cannot be determined, it keeps the one that
// it has, and the condition says why.
func configure(f addOnFacts) configuration {
	wanted := wantedConfigs(f.cma, f.placement, f.addon.Spec.Configs)
	next := f.references(wanted)
	current := f.addon.Status.ConfigReferences
	blocked := f.blocked(wanted, next)
	waiting := f.waiting(wanted)
	switch {
	case !f.addon.DeletionTimestamp.IsZero() && (blocked != "" || len(waiting) > 0 || !sameConfigs(current, next)):
		// A pre-delete hook must not be lost to a config that went first, nor to a placement that lets the cluster go.
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

// blocked says why the add-on must keep the configuration that it has; "" when it need not.
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

// missing names the configs that are asked for and do not exist; "" when all do.
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

// unselected reports whether the add-on is installed by placements none of which selects its cluster now, or where that is
// unknown. Until it is uninstalled or selected again, the defaults are not meant for it. An add-on that somebody
// created by hand is subject to the defaults when no placement selects it.
func (f addOnFacts) unselected() bool {
	if f.placement >= 0 || len(placementsOf(f.cma)) == 0 {
		return false
	}
	return len(f.missingPlacements) > 0 || f.addon.Labels[names.LabelInstalledBy] == names.InstalledByPlacement
}

// keptCondition is the condition of an add-on that keeps its configuration. An add-on that is adrift stays configured if it
// was: nothing is known to be wrong with what it has.
func (f addOnFacts) keptCondition(message string) *metav1.Condition {
	condition := notConfigured(message)
	was := meta.IsStatusConditionTrue(f.addon.Status.Conditions, addonv1beta1.ManagedClusterAddOnConditionConfigured)
	if f.unselected() && was {
		condition.Status, condition.Reason = metav1.ConditionTrue, reasonConfigured
	}
	return condition
}

// waiting says for which configs the add-on's own manager has yet to report the hash.
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

// success is the message of an add-on whose configuration is determined.
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

// references builds the references of the requested configs in their order; what the old list knew of the same config
// is kept.
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

// strategy is the rollout strategy that the add-on is subject to.
func (f addOnFacts) strategy() clusterv1alpha1.RolloutType {
	if f.placement < 0 {
		return clusterv1alpha1.All
	}
	return f.cma.Spec.InstallStrategy.Placements[f.placement].RolloutStrategy.Type
}

// supported reports whether we roll out by a strategy.
func supported(strategy clusterv1alpha1.RolloutType) bool {
	return strategy == "" || strategy == clusterv1alpha1.All
}

// unsupported reports whether the add-on is known not to support a kind of config. Before its registration nothing is
// known.
func (f addOnFacts) unsupported(resource addonv1beta1.ConfigGroupResource) bool {
	stated := len(f.addon.Status.SupportedConfigs) > 0 || meta.FindStatusCondition(
		f.addon.Status.Conditions, addonv1beta1.ManagedClusterAddOnRegistrationApplied) != nil
	return stated && !slices.Contains(f.addon.Status.SupportedConfigs, resource)
}

// sameDesired reports whether two lists of references ask for the same configs with the same content, in any order.
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

// sameConfigs reports whether two lists of references ask for the same configs, whatever their content.
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
