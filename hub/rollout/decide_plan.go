package rollout

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1alpha1 "open-cluster-management.io/api/cluster/v1alpha1"

	"github.com/spokelet/spokelet/internal/addonapi"
	"github.com/spokelet/spokelet/internal/reconcile"
)

// planFacts are the inputs for the progress of an add-on on all its clusters.
type planFacts struct {
	now time.Time
	cma *addonv1beta1.ClusterManagementAddOn
	// placements are the facts about the placements of the install strategy, in its order.
	placements []placementFacts
	addons     []*addonv1beta1.ManagedClusterAddOn
	found      configStates
}

// placementFacts are the facts about one placement.
type placementFacts struct {
	exists bool
	// conditions are those of the Placement.
	conditions []metav1.Condition
	// clusters are the selected clusters.
	clusters map[string]bool
}

// phase is the progress of one add-on with its configuration (docs/reference/hub.md, "Rollout").
type phase int

const (
	toApply phase = iota
	inFlight
	failed
	succeeded
)

// phaseOf compares the recorded references of an add-on with the wanted ones. Unlike in OCM, one reference that is
// still to be applied outweighs another in flight.
func phaseOf(addon *addonv1beta1.ManagedClusterAddOn, want []addonv1beta1.ConfigReference) phase {
	have := addon.Status.ConfigReferences
	if !sameDesired(have, want) {
		return toApply
	}
	for _, reference := range have {
		if applied := reference.LastAppliedConfig; applied != nil && *applied == *reference.DesiredConfig {
			continue
		}
		condition := progressing(addon)
		if condition != nil && condition.Reason == addonv1beta1.ProgressingReasonFailed {
			return failed
		}
		return inFlight
	}
	return succeeded
}

// counts is the progress of the add-ons of one placement (docs/reference/hub.md, "Counts of a placement").
type counts struct {
	total, configured, progressing, done, failed, timeout int
	stuckAddOns                                           stuckAddOns
	// recheck is the next instant at which an add-on may time out; zero for none.
	recheck time.Time
}

// count counts the add-ons of the placement at index. owners maps each cluster to the index of its owning placement.
func (f planFacts) count(index int, owners map[string]int) counts {
	var c counts
	strategy := f.cma.Spec.InstallStrategy.Placements[index].RolloutStrategy
	deadline := progressDeadline(strategy)
	for cluster := range f.placements[index].clusters {
		c.total++
		if owners[cluster] == index {
			c.configured++
		}
	}
	// Most add-ons have no configs of their own, so theirs are computed once.
	wanted := wantedConfigs(f.cma, index, nil)
	next := f.addOn(&addonv1beta1.ManagedClusterAddOn{}, index).references(wanted)
	for _, addon := range f.addons {
		if owner, owned := owners[addon.Namespace]; !owned || owner != index {
			continue
		}
		c.stuckAddOns.add(addon, f.now)
		facts, wanted, next := f.addOn(addon, index), wanted, next
		if len(addon.Spec.Configs) > 0 {
			wanted = wantedConfigs(f.cma, index, addon.Spec.Configs)
			next = facts.references(wanted)
		}
		reached := phaseOf(addon, next)
		expiry := f.expiry(addon, deadline)
		expired := !expiry.IsZero() && !f.now.Before(expiry)
		switch {
		case reached == succeeded:
			c.done++
		case reached == toApply:
			if facts.blocked(wanted, next) == "" {
				c.progressing++
			}
		case expired:
			c.timeout++
			if reached == failed {
				c.failed++
			}
		default:
			c.progressing++
			c.recheck = reconcile.Earliest(c.recheck, expiry)
		}
	}
	c.recheck = reconcile.Earliest(c.recheck, c.stuckAddOns.recheck)
	return c
}

// complete reports whether all add-ons of the placement have their configuration.
func (c counts) complete() bool { return c.done == c.configured && c.done > 0 }

// message returns the message of the placement's condition, in the form that OCM's scripts parse.
func (c counts) message() string {
	if c.complete() {
		return fmt.Sprintf("selected clusters %d. configured addons %d/%d completed with no errors, %d failed %d timeout.",
			c.total, c.done, c.configured, c.failed, c.timeout)
	}
	return fmt.Sprintf("selected clusters %d. configured addons %d/%d progressing..., %d failed %d timeout.",
		c.total, c.progressing+c.done, c.configured, c.failed, c.timeout)
}

func (c counts) condition(remarks []string) metav1.Condition {
	condition := inProgress(c.message())
	if c.complete() {
		condition = notProgressing(addonv1beta1.ProgressingReasonCompleted, c.message())
	}
	if count := c.stuckAddOns.remark(); count != "" {
		remarks = append(remarks, count)
	}
	if len(remarks) > 0 {
		condition.Message += " " + listed(remarks) + "."
	}
	return condition
}

// remarks explains to the author of a placement entry what keeps its add-ons from their configuration.
func (f planFacts) remarks(index int) []string {
	strategy := f.cma.Spec.InstallStrategy.Placements[index]
	var remarks []string
	if remark := f.placements[index].selectionRemark(strategy.PlacementRef); remark != "" {
		remarks = append(remarks, remark)
	}
	if kind := strategy.RolloutStrategy.Type; !supported(kind) {
		remarks = append(remarks, fmt.Sprintf(
			"rollout strategy %s is not supported yet, so add-ons keep the configuration that they have", kind))
	}
	for _, r := range wantedConfigs(f.cma, index, nil) {
		if f.found[r.AddOnConfig].missing {
			remarks = append(remarks, describe(r.AddOnConfig)+" does not exist")
		}
	}
	return remarks
}

// owners maps every selected cluster to the last placement that selects it.
func (f planFacts) owners() map[string]int {
	owners := map[string]int{}
	for index, placement := range f.placements {
		for cluster := range placement.clusters {
			owners[cluster] = index
		}
	}
	return owners
}

// addOn returns the facts for one add-on of a placement.
func (f planFacts) addOn(addon *addonv1beta1.ManagedClusterAddOn, placement int) addOnFacts {
	return addOnFacts{now: f.now, addon: addon, cma: f.cma, placement: placement, found: f.found}
}

// expiry returns when an add-on in flight times out; zero when it never does.
func (f planFacts) expiry(addon *addonv1beta1.ManagedClusterAddOn, deadline time.Duration) time.Time {
	condition := progressing(addon)
	if deadline == 0 || condition == nil || condition.LastTransitionTime.IsZero() {
		return time.Time{}
	}
	return condition.LastTransitionTime.Add(deadline)
}

func progressing(addon *addonv1beta1.ManagedClusterAddOn) *metav1.Condition {
	return meta.FindStatusCondition(addon.Status.Conditions, addonv1beta1.ManagedClusterAddOnConditionProgressing)
}

// progressDeadline returns how long an add-on may take; 0 for no limit, also when the deadline is invalid.
func progressDeadline(strategy clusterv1alpha1.RolloutStrategy) time.Duration {
	var config clusterv1alpha1.RolloutConfig
	switch {
	case strategy.Type == clusterv1alpha1.Progressive && strategy.Progressive != nil:
		config = strategy.Progressive.RolloutConfig
	case strategy.Type == clusterv1alpha1.ProgressivePerGroup && strategy.ProgressivePerGroup != nil:
		config = strategy.ProgressivePerGroup.RolloutConfig
	case supported(strategy.Type) && strategy.All != nil:
		config = strategy.All.RolloutConfig
	}
	text := config.ProgressDeadline
	if text == "" {
		return 0
	}
	// 20 bits bound the number of hours to what fits a duration.
	amount, err := strconv.ParseUint(text[:len(text)-1], 10, 20)
	if err != nil {
		return 0
	}
	switch text[len(text)-1] {
	case 'h':
		return time.Duration(amount) * time.Hour
	case 'm':
		return time.Duration(amount) * time.Minute
	case 's':
		return time.Duration(amount) * time.Second
	}
	return 0
}

// placementConfigs returns the configs of a placement in the order of its progression: by group and resource, then as
// listed.
func placementConfigs(strategy addonv1beta1.PlacementStrategy) []addonv1beta1.AddOnConfig {
	configs := slices.Clone(strategy.Configs)
	slices.SortStableFunc(configs, func(a, b addonv1beta1.AddOnConfig) int {
		return compareResources(a.ConfigGroupResource, b.ConfigGroupResource)
	})
	return configs
}

// placementsOf returns the placements that install the add-on; none when people install it.
func placementsOf(cma *addonv1beta1.ClusterManagementAddOn) []addonv1beta1.PlacementStrategy {
	if !addonapi.InstalledByPlacements(cma) || !addonapi.Managed(cma) {
		return nil
	}
	return cma.Spec.InstallStrategy.Placements
}
