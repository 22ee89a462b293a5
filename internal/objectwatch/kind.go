package objectwatch

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// kindPhase says what discovery showed about a resource.
type kindPhase int

const (
	kindPending kindPhase = iota
	kindAbsent
	kindUnwatchable
	kindServed
)

// kind is a resource as the API server serves it.
type kind struct {
	phase kindPhase
	// resource is the resource in its preferred version, if it is served.
	resource   schema.GroupVersionResource
	namespaced bool
	// err is why the last discovery did not show whether the resource is served; nil if it did.
	err error
}

// discovered is one answer of discovery.
type discovered struct {
	groups []*metav1.APIGroup
	lists  []*metav1.APIResourceList
	// failed are the group versions whose resources are unknown, err is why nothing is known at all.
	failed map[schema.GroupVersion]error
	err    error
}

// find returns a resource from an answer of discovery. Where the answer is incomplete it returns what was known before.
func (d discovered) find(resource schema.GroupResource, before kind) kind {
	before.err = d.err
	if d.err != nil {
		return before
	}
	best := kind{phase: kindAbsent}
	for _, version := range d.versions(resource.Group) {
		gv := schema.GroupVersion{Group: resource.Group, Version: version}
		if err := d.failed[gv]; err != nil && best.phase == kindAbsent {
			before.err = err
			return before
		}
		found := d.in(gv, resource.Resource)
		if found.phase == kindServed {
			return found
		}
		best.phase = max(best.phase, found.phase)
	}
	return best
}

// versions returns the versions of a group, the preferred one first.
func (d discovered) versions(group string) []string {
	var versions []string
	for _, g := range d.groups {
		if g.Name != group {
			continue
		}
		versions = append(versions, g.PreferredVersion.Version)
		for _, v := range g.Versions {
			versions = append(versions, v.Version)
		}
	}
	for gv := range d.failed {
		if gv.Group == group && !slices.Contains(versions, gv.Version) {
			versions = append(versions, gv.Version)
		}
	}
	return versions
}

// in returns a resource as one version of its group serves it.
func (d discovered) in(gv schema.GroupVersion, resource string) kind {
	for _, list := range d.lists {
		if list.GroupVersion != gv.String() {
			continue
		}
		for i := range list.APIResources {
			served := &list.APIResources[i]
			switch {
			case served.Name != resource:
			case slices.Contains(served.Verbs, "list") && slices.Contains(served.Verbs, "watch"):
				return kind{phase: kindServed, resource: gv.WithResource(resource), namespaced: served.Namespaced}
			default:
				return kind{phase: kindUnwatchable}
			}
		}
	}
	return kind{phase: kindAbsent}
}
