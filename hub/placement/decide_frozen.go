package placement

import (
	"maps"
	"slices"

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

// narrow returns the plan for a Placement that is not decided: it is misconfigured, is being deleted, or another
// scheduler is about to take it over. It keeps its decisions, but no cluster that its namespace may not have any more:
// who binds sets is an administrator, and who writes the Placement may not be one.
func narrow(f facts, in interest, misconfigured error) plan {
	p := plan{misconfigured: misconfigured, frozen: true, scope: in.scope}
	if !in.scoped {
		return p
	}
	clusters := map[string]*clusterv1.ManagedCluster{}
	for _, c := range f.clusters {
		clusters[c.Name] = c
	}
	left := map[string]bool{}
	for _, page := range f.decisionSlices {
		for _, name := range addonapi.SelectedClusters(page) {
			c, known := clusters[name]
			left[name] = known && !f.unread[name] && !in.scope.covers(c)
		}
	}
	maps.DeleteFunc(left, func(_ string, leaves bool) bool { return !leaves })
	if p.dropped = slices.Sorted(maps.Keys(left)); len(left) == 0 {
		return p
	}
	p.layout = layout.Narrow(f.decisionSlices, f.placement.Status.DecisionGroups, func(name string) bool { return left[name] })
	return p
}

// isOurs reports whether nobody else has written the decisions of a Placement since this controller decided, or began
// to take clusters from them.
func (p plan) isOurs(f facts) bool {
	return fleet.IsDecided(f.placement, present(f.decisionSlices)) || fleet.IsDecided(f.placement, present(p.layout.Wanted()))
}

// present returns the PlacementDecisions that count.
func present(pages []*clusterv1beta1.PlacementDecision) []*clusterv1beta1.PlacementDecision {
	return slices.DeleteFunc(slices.Clone(pages), fleet.IsOver)
}

// concludeFrozen sets the status that follows from a plan that only takes clusters away. It is written first: until the
// PlacementDecisions follow, they are not what is decided, so that nobody acts on a part of them.
func concludeFrozen(f facts, p plan, status *clusterv1beta1.PlacementStatus) {
	if p.misconfigured != nil && !f.frozen {
		reconcile.SetCondition(&status.Conditions, metav1.Condition{
			Type: clusterv1beta1.PlacementConditionMisconfigured, Status: metav1.ConditionTrue, Reason: reasonMisconfigured,
			Message: p.misconfigured.Error(), ObservedGeneration: f.placement.Generation,
		}, f.now)
	}
	mark := meta.FindStatusCondition(status.Conditions, names.ConditionDecided)
	if len(p.dropped) == 0 || (mark != nil && !p.isOurs(f)) {
		return
	}
	pages := present(p.layout.Wanted())
	selected := map[string]bool{}
	for _, page := range pages {
		for _, name := range addonapi.SelectedClusters(page) {
			selected[name] = true
		}
	}
	status.NumberOfSelectedClusters = int32(len(selected)) //nolint:gosec // they are fewer than that
	status.DecisionGroups = p.layout.Groups
	if mark != nil {
		reconcile.SetCondition(&status.Conditions, fleet.Mark(mark.ObservedGeneration, pages), f.now)
	}
}
