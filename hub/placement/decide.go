package placement

import (
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/spokelet/spokelet/hub/placement/layout"
	"github.com/spokelet/spokelet/internal/addonapi"
	"github.com/spokelet/spokelet/internal/names"
)

// decide returns the plan for one Placement. It is given what the Placement is interested in, which follows from the
// facts without the clusters.
func decide(f facts, in interest) plan {
	if in.misconfigured != nil || f.frozen {
		return narrow(f, in, in.misconfigured)
	}
	current := map[string]bool{}
	for _, o := range f.decisionSlices {
		for _, name := range addonapi.SelectedClusters(o) {
			current[name] = true
		}
	}
	chosen, err := selectClusters(f.placement.Spec, in, f.clusters, f.unread, current, f.now)
	if err != nil {
		return narrow(f, in, err)
	}
	planned := layout.Plan(layout.Request{
		Placement: f.placement, Groups: in.rules.groupNames(), Size: in.rules.size, Selected: chosen.groups,
		Have: f.decisionSlices, Taken: f.taken,
	})
	if len(chosen.unbound) == 0 {
		honour(planned.Slices)
	}
	maps.DeleteFunc(current, func(name string, _ bool) bool {
		_, stays := chosen.groups[name]
		return stays
	})
	return plan{
		scope: in.scope, selection: chosen, layout: planned, dropped: slices.Sorted(maps.Keys(current)),
	}
}

// honour marks slices whose clusters are all in bound sets.
func honour(planned []layout.Slice) {
	for _, p := range planned {
		if p.Want != nil {
			metav1.SetMetaDataAnnotation(&p.Want.ObjectMeta, names.AnnotationSetBindings, names.SetBindingsHonoured)
		}
	}
}
