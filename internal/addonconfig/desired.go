package addonconfig

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1alpha1 "open-cluster-management.io/api/cluster/v1alpha1"

	"github.com/spokelet/spokelet/internal/addonapi"
)

// Level is the origin of a config; a higher level replaces all configs of the same resource of lower levels.
type Level int

const (
	// FromDefaults is a default of the ClusterManagementAddOn.
	FromDefaults Level = iota
	// FromPlacement is a config of the placement that owns the cluster.
	FromPlacement
	// FromAddOn is a config in the spec of the ManagedClusterAddOn.
	FromAddOn
)

// DesiredConfig is one config that an add-on is to use, and its origin.
type DesiredConfig struct {
	addonv1beta1.AddOnConfig
	// Level is the origin of the config.
	Level Level
	// Placement is the index of the placement that names it; only for FromPlacement.
	Placement int
}

// Wanted returns the names of DesiredConfigs.
func Wanted(
	cma *addonv1beta1.ClusterManagementAddOn, placement int, own []addonv1beta1.AddOnConfig,
) []addonv1beta1.AddOnConfig {
	var configs []addonv1beta1.AddOnConfig
	for _, desired := range DesiredConfigs(cma, placement, own) {
		configs = append(configs, desired.AddOnConfig)
	}
	return configs
}

// Names returns the names of the configs that an add-on has, of whatever content.
func Names(references []addonv1beta1.ConfigReference) []addonv1beta1.AddOnConfig {
	var configs []addonv1beta1.AddOnConfig
	for _, r := range references {
		if r.DesiredConfig != nil {
			configs = append(configs, addonv1beta1.AddOnConfig{
				ConfigGroupResource: r.ConfigGroupResource, ConfigReferent: r.DesiredConfig.ConfigReferent,
			})
		}
	}
	return configs
}

// DesiredConfigs returns the configs that an add-on is to use, ordered by group and resource. Within a resource they
// keep the order of their list, because most add-ons use one of them, by its place. placement is the index of the
// placement that owns the add-on; -1 for none.
func DesiredConfigs(
	cma *addonv1beta1.ClusterManagementAddOn, placement int, own []addonv1beta1.AddOnConfig,
) []DesiredConfig {
	defaults := slices.DeleteFunc(slices.Clone(cma.Spec.DefaultConfigs), func(c addonv1beta1.AddOnConfig) bool {
		return !addonapi.HasDefault(c)
	})
	chosen := map[addonv1beta1.ConfigGroupResource][]DesiredConfig{}
	choose(chosen, DesiredConfig{Level: FromDefaults}, defaults)
	if placement >= 0 {
		configs := cma.Spec.InstallStrategy.Placements[placement].Configs
		choose(chosen, DesiredConfig{Level: FromPlacement, Placement: placement}, configs)
	}
	choose(chosen, DesiredConfig{Level: FromAddOn}, own)

	var all []DesiredConfig
	for _, resource := range sortedResources(chosen) {
		all = append(all, chosen[resource]...)
	}
	return all
}

// ownKinds returns the kinds that the spec of the add-on itself names; nil for none.
func ownKinds(desired []DesiredConfig) map[addonv1beta1.ConfigGroupResource]bool {
	var own map[addonv1beta1.ConfigGroupResource]bool
	for _, d := range desired {
		if d.Level == FromAddOn {
			if own == nil {
				own = map[addonv1beta1.ConfigGroupResource]bool{}
			}
			own[d.ConfigGroupResource] = true
		}
	}
	return own
}

// choose adds the configs of one level: the first of a resource replaces those of lower levels; duplicates count once.
func choose(
	chosen map[addonv1beta1.ConfigGroupResource][]DesiredConfig, from DesiredConfig, configs []addonv1beta1.AddOnConfig,
) {
	for _, config := range configs {
		have := chosen[config.ConfigGroupResource]
		wanted := from
		wanted.AddOnConfig = config
		switch {
		case len(have) > 0 && have[0].Level < from.Level:
			chosen[config.ConfigGroupResource] = []DesiredConfig{wanted}
		case !slices.Contains(have, wanted):
			chosen[config.ConfigGroupResource] = append(have, wanted)
		}
	}
}

func sortedResources(chosen map[addonv1beta1.ConfigGroupResource][]DesiredConfig) []addonv1beta1.ConfigGroupResource {
	resources := make([]addonv1beta1.ConfigGroupResource, 0, len(chosen))
	for resource := range chosen {
		resources = append(resources, resource)
	}
	slices.SortFunc(resources, CompareResources)
	return resources
}

// CompareResources orders kinds of configs by group, then by resource.
func CompareResources(a, b addonv1beta1.ConfigGroupResource) int {
	return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.Resource, b.Resource))
}

// Reference is the common part of all kinds of config references.
type Reference struct {
	addonv1beta1.ConfigGroupResource
	// Desired is the config with its hash; nil when the reference has none.
	Desired *addonv1beta1.ConfigSpecHash
}

// Is reports whether a reference is to a config, of any content.
func (r Reference) Is(config addonv1beta1.AddOnConfig) bool {
	return r.Desired != nil && r.ConfigGroupResource == config.ConfigGroupResource &&
		r.Desired.ConfigReferent == config.ConfigReferent
}

// HashOf returns the hash of a config in a list of references; "" when it is not there.
func HashOf(config addonv1beta1.AddOnConfig, references []Reference) string {
	for _, r := range references {
		if r.Is(config) {
			return r.Desired.SpecHash
		}
	}
	return ""
}

// AddOnReferences returns the references in the status of a ManagedClusterAddOn.
func AddOnReferences(in []addonv1beta1.ConfigReference) []Reference {
	out := make([]Reference, 0, len(in))
	for _, r := range in {
		out = append(out, Reference{r.ConfigGroupResource, r.DesiredConfig})
	}
	return out
}

// PlacementReferences returns the references of a placement in the status of a ClusterManagementAddOn.
func PlacementReferences(in []addonv1beta1.InstallConfigReference) []Reference {
	out := make([]Reference, 0, len(in))
	for _, r := range in {
		out = append(out, Reference{r.ConfigGroupResource, r.DesiredConfig})
	}
	return out
}

// DefaultReferences returns the references of the defaults in the status of a ClusterManagementAddOn.
func DefaultReferences(in []addonv1beta1.DefaultConfigReference) []Reference {
	out := make([]Reference, 0, len(in))
	for _, r := range in {
		out = append(out, Reference{r.ConfigGroupResource, r.DesiredConfig})
	}
	return out
}

// Describe formats a config for messages: addontemplates "hello", configmaps "ns/hello".
func Describe(config addonv1beta1.AddOnConfig) string {
	name := config.Name
	if config.Namespace != "" {
		name = config.Namespace + "/" + name
	}
	return fmt.Sprintf("%s %q", config.Resource, name)
}

// Source returns the origin of a config for messages, so that its author knows what to correct.
func (r DesiredConfig) Source(cma *addonv1beta1.ClusterManagementAddOn) string {
	switch r.Level {
	case FromAddOn:
		return "spec.configs of the add-on"
	case FromPlacement:
		ref := cma.Spec.InstallStrategy.Placements[r.Placement].PlacementRef
		return fmt.Sprintf("placement %s/%s of ClusterManagementAddOn %s", ref.Namespace, ref.Name, cma.Name)
	case FromDefaults:
	}
	return "defaults of ClusterManagementAddOn " + cma.Name
}

// PlacementsOf returns the placements that install the add-on; none when people install it.
func PlacementsOf(cma *addonv1beta1.ClusterManagementAddOn) []addonv1beta1.PlacementStrategy {
	if !addonapi.InstalledByPlacements(cma) || !addonapi.Managed(cma) {
		return nil
	}
	return cma.Spec.InstallStrategy.Placements
}

// NamedBy returns the configurations that the spec of a ClusterManagementAddOn names: its defaults, and those of all
// its placements.
func NamedBy(cma *addonv1beta1.ClusterManagementAddOn) []addonv1beta1.AddOnConfig {
	named := slices.DeleteFunc(slices.Clone(cma.Spec.DefaultConfigs), func(c addonv1beta1.AddOnConfig) bool {
		return !addonapi.HasDefault(c)
	})
	for _, placement := range cma.Spec.InstallStrategy.Placements {
		named = append(named, placement.Configs...)
	}
	return named
}

// MinSuccessTime returns how long a cluster must be well before it counts as done.
func MinSuccessTime(strategy clusterv1alpha1.RolloutStrategy) time.Duration {
	switch {
	case strategy.Type == clusterv1alpha1.Progressive && strategy.Progressive != nil:
		return strategy.Progressive.MinSuccessTime.Duration
	case strategy.Type == clusterv1alpha1.ProgressivePerGroup && strategy.ProgressivePerGroup != nil:
		return strategy.ProgressivePerGroup.MinSuccessTime.Duration
	}
	return 0
}
