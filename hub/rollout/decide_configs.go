package rollout

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"

	"github.com/spokelet/spokelet/internal/addonapi"
)

// level is the origin of a config; a higher level replaces all configs of the same resource of lower levels.
type level int

const (
	fromDefaults level = iota
	fromPlacement
	fromAddOn
)

// wantedConfig is one config that an add-on is to use, and its origin.
type wantedConfig struct {
	addonv1beta1.AddOnConfig
	level level
	// placement is the index of the placement that names it; only for fromPlacement.
	placement int
}

// wantedConfigs returns the configs that an add-on is to use, ordered by group and resource. Within a resource they
// keep the order of their list, because most add-ons use the first. placement is the index of the placement that owns
// the add-on; -1 for none.
func wantedConfigs(
	cma *addonv1beta1.ClusterManagementAddOn, placement int, own []addonv1beta1.AddOnConfig,
) []wantedConfig {
	defaults := slices.DeleteFunc(slices.Clone(cma.Spec.DefaultConfigs), func(c addonv1beta1.AddOnConfig) bool {
		return !addonapi.HasDefault(c)
	})
	chosen := map[addonv1beta1.ConfigGroupResource][]wantedConfig{}
	choose(chosen, wantedConfig{level: fromDefaults}, defaults)
	if placement >= 0 {
		configs := cma.Spec.InstallStrategy.Placements[placement].Configs
		choose(chosen, wantedConfig{level: fromPlacement, placement: placement}, configs)
	}
	choose(chosen, wantedConfig{level: fromAddOn}, own)

	var all []wantedConfig
	for _, resource := range sortedResources(chosen) {
		all = append(all, chosen[resource]...)
	}
	return all
}

// choose adds the configs of one level: the first of a resource replaces those of lower levels; duplicates count once.
func choose(
	chosen map[addonv1beta1.ConfigGroupResource][]wantedConfig, from wantedConfig, configs []addonv1beta1.AddOnConfig,
) {
	for _, config := range configs {
		have := chosen[config.ConfigGroupResource]
		wanted := from
		wanted.AddOnConfig = config
		switch {
		case len(have) > 0 && have[0].level < from.level:
			chosen[config.ConfigGroupResource] = []wantedConfig{wanted}
		case !slices.Contains(have, wanted):
			chosen[config.ConfigGroupResource] = append(have, wanted)
		}
	}
}

func sortedResources(chosen map[addonv1beta1.ConfigGroupResource][]wantedConfig) []addonv1beta1.ConfigGroupResource {
	resources := make([]addonv1beta1.ConfigGroupResource, 0, len(chosen))
	for resource := range chosen {
		resources = append(resources, resource)
	}
	slices.SortFunc(resources, compareResources)
	return resources
}

func compareResources(a, b addonv1beta1.ConfigGroupResource) int {
	return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.Resource, b.Resource))
}

// configState is the observed state of one config.
type configState struct {
	// foreign means that the hub does not read this kind: the add-on's own manager reports its hash.
	foreign bool
	// missing means that the hub reads this kind and the config does not exist.
	missing bool
	// hash is the spec hash, unless the config is foreign.
	hash string
	// generation is the generation, unless the config is foreign.
	generation int64
}

// configStates are the observed states of all configs that a decision may need.
type configStates map[addonv1beta1.AddOnConfig]configState

// hash returns the hash of a wanted config; "" when it is unknown.
func (f configStates) hash(
	wanted wantedConfig, cma *addonv1beta1.ClusterManagementAddOn, addon *addonv1beta1.ManagedClusterAddOn,
) string {
	found := f[wanted.AddOnConfig]
	if !found.foreign {
		return found.hash
	}
	switch wanted.level {
	case fromAddOn:
		return hashOf(wanted.AddOnConfig, addOnReferences(addon.Status.ConfigReferences))
	case fromPlacement:
		strategy := cma.Spec.InstallStrategy.Placements[wanted.placement]
		for _, progression := range cma.Status.InstallProgressions {
			if progression.PlacementRef == strategy.PlacementRef {
				return hashOf(wanted.AddOnConfig, placementReferences(progression.ConfigReferences))
			}
		}
	case fromDefaults:
		return hashOf(wanted.AddOnConfig, defaultReferences(cma.Status.DefaultConfigReferences))
	}
	return ""
}

// reference is the common part of all kinds of config references.
type reference struct {
	addonv1beta1.ConfigGroupResource
	desired *addonv1beta1.ConfigSpecHash
}

func (r reference) is(config addonv1beta1.AddOnConfig) bool {
	return r.desired != nil && r.ConfigGroupResource == config.ConfigGroupResource &&
		r.desired.ConfigReferent == config.ConfigReferent
}

func hashOf(config addonv1beta1.AddOnConfig, references []reference) string {
	for _, r := range references {
		if r.is(config) {
			return r.desired.SpecHash
		}
	}
	return ""
}

func addOnReferences(in []addonv1beta1.ConfigReference) []reference {
	out := make([]reference, 0, len(in))
	for _, r := range in {
		out = append(out, reference{r.ConfigGroupResource, r.DesiredConfig})
	}
	return out
}

func placementReferences(in []addonv1beta1.InstallConfigReference) []reference {
	out := make([]reference, 0, len(in))
	for _, r := range in {
		out = append(out, reference{r.ConfigGroupResource, r.DesiredConfig})
	}
	return out
}

func defaultReferences(in []addonv1beta1.DefaultConfigReference) []reference {
	out := make([]reference, 0, len(in))
	for _, r := range in {
		out = append(out, reference{r.ConfigGroupResource, r.DesiredConfig})
	}
	return out
}

// describe formats a config for messages: addontemplates "hello", configmaps "ns/hello".
func describe(config addonv1beta1.AddOnConfig) string {
	name := config.Name
	if config.Namespace != "" {
		name = config.Namespace + "/" + name
	}
	return fmt.Sprintf("%s %q", config.Resource, name)
}

// source returns the origin of a config for messages, so that its author knows what to correct.
func (r wantedConfig) source(cma *addonv1beta1.ClusterManagementAddOn) string {
	switch r.level {
	case fromAddOn:
		return "spec.configs of the add-on"
	case fromPlacement:
		ref := cma.Spec.InstallStrategy.Placements[r.placement].PlacementRef
		return fmt.Sprintf("placement %s/%s of ClusterManagementAddOn %s", ref.Namespace, ref.Name, cma.Name)
	case fromDefaults:
	}
	return "defaults of ClusterManagementAddOn " + cma.Name
}

// listed joins parts for a message and shortens a long list.
func listed(parts []string) string {
	const most = 5
	if len(parts) > most {
		return strings.Join(parts[:most], "; ") + fmt.Sprintf("; and %d more", len(parts)-most)
	}
	return strings.Join(parts, "; ")
}
