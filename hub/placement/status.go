package placement

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"

	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/internal/reconcile"
)

const (
	reasonMisconfigured    = "Misconfigured"
	reasonConfigured       = "Succeedconfigured"
	reasonNoneMatched      = "NoManagedClusterMatched"
	reasonNotAllScheduled  = "NotAllDecisionsScheduled"
	reasonAllScheduled     = "AllDecisionsScheduled"
	messageWellConfigured  = "Placement configurations check pass"
	messageDecisionsAreOut = "All cluster decisions scheduled"

	// maxNames is the number of cluster names that a message lists.
	maxNames = 5
)

// conclude sets the status that follows from the pass. The selection is published only when all slices were written.
func conclude(f facts, p plan, failed error, status *clusterv1beta1.PlacementStatus) {
	set := func(c metav1.Condition) {
		c.ObservedGeneration = f.placement.Generation
		reconcile.SetCondition(&status.Conditions, c, f.now)
	}
	if p.misconfigured != nil {
		set(metav1.Condition{
			Type: clusterv1beta1.PlacementConditionMisconfigured, Status: metav1.ConditionTrue,
			Reason: reasonMisconfigured, Message: p.misconfigured.Error(),
		})
		return
	}
	set(metav1.Condition{
		Type: clusterv1beta1.PlacementConditionMisconfigured, Status: metav1.ConditionFalse,
		Reason: reasonConfigured, Message: messageWellConfigured,
	})
	if failed != nil {
		return
	}
	set(satisfied(f.placement.Spec, p))
	count := int32(len(p.selection.names)) //nolint:gosec // a hub has fewer clusters than an int32 can count
	status.NumberOfSelectedClusters = count
	status.DecisionGroups = []clusterv1beta1.DecisionGroupStatus{{
		Decisions: sliceNames(p.decisionSlices), ClustersCount: count,
	}}
}

// satisfied returns the condition that reports whether the Placement has all clusters that it asks for, and why others
// are left out.
func satisfied(spec clusterv1beta1.PlacementSpec, p plan) metav1.Condition {
	s := p.selection
	c := metav1.Condition{Type: clusterv1beta1.PlacementConditionSatisfied, Status: metav1.ConditionFalse}
	tainted := ""
	if n := s.matching - s.eligible; n > 0 {
		tainted = fmt.Sprintf("; %d of the %d clusters that match are kept out by taints that are not tolerated",
			n, s.matching)
	}
	switch {
	case len(s.unbound) > 0:
		c.Reason, c.Message = cmp.Or(p.scope.reason, reasonNoBindings), unboundKept(s.unbound)
	case p.scope.reason != "":
		c.Reason, c.Message = p.scope.reason, p.scope.message
	case s.inSets == 0:
		c.Reason = reasonEmptySets
		c.Message = fmt.Sprintf("No ManagedCluster is in ManagedClusterSet %s", strings.Join(p.scope.sets, ", "))
	case s.eligible == 0:
		c.Reason, c.Message = reasonNoneMatched, "No ManagedCluster matches the placement"+tainted
	case spec.NumberOfClusters != nil && len(s.names) < int(*spec.NumberOfClusters):
		c.Reason = reasonNotAllScheduled
		c.Message = fmt.Sprintf("%d of %d clusters are selected, no more are eligible%s",
			len(s.names), *spec.NumberOfClusters, tainted)
	default:
		c.Status, c.Reason, c.Message = metav1.ConditionTrue, reasonAllScheduled, messageDecisionsAreOut+tainted
	}
	return c
}

// unboundKept names the clusters that stay selected without a binding, with a remedy.
func unboundKept(clusters []string) string {
	shown := strings.Join(clusters[:min(len(clusters), maxNames)], ", ")
	if more := len(clusters) - maxNames; more > 0 {
		shown = fmt.Sprintf("%s and %d more", shown, more)
	}
	return fmt.Sprintf("No ManagedClusterSetBinding in this namespace allows clusters that stay selected, because an "+
		"earlier version selected them without asking: %s. Bind a ManagedClusterSet that has them, for all clusters by a "+
		"ManagedClusterSetBinding with the name global and spec.clusterSet: global; or let them go by annotating the "+
		"placement with %s=%s. Until then only bound sets add clusters",
		shown, names.AnnotationSetBindings, names.SetBindingsHonoured)
}

// sliceNames returns the names of the slices that stay, ordered by number.
func sliceNames(decisionSlices []decisionSlice) []string {
	var staying []decisionSlice
	for _, p := range decisionSlices {
		if p.want != nil {
			staying = append(staying, p)
		}
	}
	slices.SortFunc(staying, func(a, b decisionSlice) int { return cmp.Compare(a.number, b.number) })
	list := make([]string, len(staying))
	for i, p := range staying {
		list[i] = p.want.Name
	}
	return list
}
