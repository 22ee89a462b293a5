package placement

import (
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"

	"github.com/spokelet/spokelet/hub/fleet"
	"github.com/spokelet/spokelet/hub/placement/layout"
	"github.com/spokelet/spokelet/internal/addonapi"
	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/internal/reconcile"
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
	chosen, err := selectClusters(f, in, current)
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

// outsidePeriod is how long a cluster must be outside of the sets before a Placement that is not decided loses it:
// tools replace bindings, and move clusters between sets, in two writes, and such a Placement selects none again.
const outsidePeriod = 30 * time.Second

// narrow returns the plan for a Placement that is not decided: it is misconfigured, is being deleted, or another
// scheduler is about to take it over. It keeps its decisions, but no cluster that its namespace may not have any more:
// who binds sets is an administrator, and who writes the Placement may not be one.
func narrow(f facts, in interest, misconfigured error) plan {
	p := plan{misconfigured: misconfigured, frozen: true, outside: map[string]time.Time{}}
	clusters := map[string]*clusterv1.ManagedCluster{}
	for _, c := range f.clusters {
		clusters[c.Name] = c
	}
	left := map[string]bool{}
	for _, page := range f.decisionSlices {
		for _, name := range addonapi.SelectedClusters(page) {
			c, known := clusters[name]
			if !known || f.unread[name] || in.scope.allows(c) || f.isOfOthers(page) {
				continue
			}
			since, was := f.outside[name]
			if !was {
				since = f.now
			}
			p.outside[name] = since
			if until := since.Add(outsidePeriod); f.now.Before(until) {
				p.selection.wake = reconcile.Earliest(p.selection.wake, until)
			} else {
				left[name] = true
			}
		}
	}
	if p.dropped = slices.Sorted(maps.Keys(left)); len(left) == 0 && !isNarrowing(f.placement) {
		return p
	}
	leaves := func(name string) bool { return left[name] }
	p.layout = layout.Narrow(f.decisionSlices, f.placement.Status.DecisionGroups, leaves)
	return p
}

// isOfOthers reports whether another scheduler made a PlacementDecision, to which the Placement is or may be left.
func (f facts) isOfOthers(page *clusterv1beta1.PlacementDecision) bool {
	_, ours := page.Annotations[names.AnnotationStickyPages]
	return (fleet.IsScheduledByOthers(f.placement) || f.undecoded != nil) && !ours
}

// reasonNarrowing is the reason of the mark while clusters are taken away: PlacementDecisions that differ from it are
// those of a pass that did not come to its end.
const reasonNarrowing = "Narrowing"

func isNarrowing(placement *clusterv1beta1.Placement) bool {
	mark := meta.FindStatusCondition(placement.Status.Conditions, names.ConditionDecided)
	return mark != nil && mark.Reason == reasonNarrowing
}

// present returns the PlacementDecisions that count.
func present(pages []*clusterv1beta1.PlacementDecision) []*clusterv1beta1.PlacementDecision {
	return slices.DeleteFunc(slices.Clone(pages), fleet.IsOver)
}

// concludeFrozen sets the status that follows from a plan that only takes clusters away. It is written first: until the
// PlacementDecisions follow, they are not what is decided, so that nobody acts on a part of them. Where they were not
// that before, for another client wrote them, they stay uncertain.
func concludeFrozen(f facts, p plan, status *clusterv1beta1.PlacementStatus) {
	if p.misconfigured != nil && !f.frozen {
		reconcile.SetCondition(&status.Conditions, metav1.Condition{
			Type: clusterv1beta1.PlacementConditionMisconfigured, Status: metav1.ConditionTrue, Reason: reasonMisconfigured,
			Message: p.misconfigured.Error(), ObservedGeneration: f.placement.Generation,
		}, f.now)
	}
	mark, begun := meta.FindStatusCondition(status.Conditions, names.ConditionDecided), isNarrowing(f.placement)
	switch {
	case len(p.dropped) == 0 && !begun, mark == nil && fleet.IsScheduledByOthers(f.placement),
		mark != nil && !begun && !fleet.IsDecided(f.placement, present(f.decisionSlices)):
		return
	}
	pages := present(p.layout.Wanted())
	selected := map[string]bool{}
	for _, page := range pages {
		for _, name := range addonapi.SelectedClusters(page) {
			selected[name] = true
		}
	}
	status.NumberOfSelectedClusters = reconcile.Int32(len(selected))
	status.DecisionGroups = p.layout.Groups
	if mark != nil {
		now := fleet.Mark(mark.ObservedGeneration, pages)
		if len(p.dropped) > 0 {
			now.Reason = reasonNarrowing
		}
		reconcile.SetCondition(&status.Conditions, now, f.now)
	}
}
