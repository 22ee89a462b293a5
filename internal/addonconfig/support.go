package addonconfig

import (
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
)

// Support is whether an add-on supports a kind of config.
type Support int

const (
	// SupportUnknown means that the add-on has not stated what it supports.
	SupportUnknown Support = iota
	// Supported means that the add-on supports the kind.
	Supported
	// NotSupported means that it stated what it supports, and not this kind.
	NotSupported
)

// SupportOf returns whether an add-on supports a kind of config. Nothing is known before its registration.
func SupportOf(addOn *addonv1beta1.ManagedClusterAddOn, resource addonv1beta1.ConfigGroupResource) Support {
	switch {
	case slices.Contains(addOn.Status.SupportedConfigs, resource):
		return Supported
	case len(addOn.Status.SupportedConfigs) > 0, meta.FindStatusCondition(
		addOn.Status.Conditions, addonv1beta1.ManagedClusterAddOnRegistrationApplied) != nil:
		return NotSupported
	}
	return SupportUnknown
}

// SameDesired reports whether two lists of references name the same configs with the same content. The kinds may be in
// any order, and the configs of a kind may not: one of them counts, by its place.
func SameDesired(a, b []addonv1beta1.ConfigReference) bool {
	if len(a) != len(b) {
		return false
	}
	next := map[addonv1beta1.ConfigGroupResource]int{}
	for i := range a {
		kind := a[i].ConfigGroupResource
		at := next[kind]
		for at < len(b) && b[at].ConfigGroupResource != kind {
			at++
		}
		if at == len(b) || a[i].DesiredConfig == nil || b[at].DesiredConfig == nil ||
			*a[i].DesiredConfig != *b[at].DesiredConfig {
			return false
		}
		next[kind] = at + 1
	}
	return true
}

// SameConfigs reports whether two lists of references name the same configs in the same order, of any content.
func SameConfigs(a, b []addonv1beta1.ConfigReference) bool {
	return slices.EqualFunc(a, b, func(x, y addonv1beta1.ConfigReference) bool {
		return x.DesiredConfig != nil && y.DesiredConfig != nil && x.ConfigGroupResource == y.ConfigGroupResource &&
			x.DesiredConfig.ConfigReferent == y.DesiredConfig.ConfigReferent
	})
}
