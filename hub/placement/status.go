package placement

import (
	"cmp"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"

	"github.com/spokelet/spokelet/hub/fleet"
	"github.com/spokelet/spokelet/internal/message"
	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/internal/reconcile"
)

const (
	reasonMisconfigured    = "Misconfigured"
	reasonConfigured       = "Succeedconfigured"
	reasonNoneMatched      = "NoManagedClusterMatched"
	reasonNotAllScheduled  = "NotAllDecisionsScheduled"
	reasonAllScheduled     = "AllDecisionsScheduled"
	reasonRefused          = "DecisionsRefused"
	messageWellConfigured  = "Placement configurations check pass"
	messageDecisionsAreOut = "All cluster decisions scheduled"

	// maxNames is the number of cluster names that a message lists.
	maxNames = 5
)

// conclude returns the status that follows from the pass. The selection is published, with the mark that it is
// complete, only when all slices are written: the plan was carried out to its end, and nothing failed.
func conclude(f facts, p plan, ended bool, failed error) clusterv1beta1.PlacementStatus {
	status := *f.placement.Status.DeepCopy()
	if p.frozen {
		concludeFrozen(f, p, &status)
		return status
	}
	set := func(c metav1.Condition) {
		c.ObservedGeneration = f.placement.Generation
		reconcile.SetCondition(&status.Conditions, c, f.now)
	}
	set(metav1.Condition{
		Type: clusterv1beta1.PlacementConditionMisconfigured, Status: metav1.ConditionFalse,
		Reason: reasonConfigured, Message: messageWellConfigured,
	})
	if refused := refusal(failed); refused != nil {
		set(metav1.Condition{
			Type: clusterv1beta1.PlacementConditionSatisfied, Status: metav1.ConditionFalse, Reason: reasonRefused,
			Message: "The hub refuses PlacementDecisions, so not all decisions are written; the first: " +
				message.Cut(refused.Error(), message.MaxCause),
		})
	}
	if !ended || failed != nil {
		return status
	}
	set(satisfied(f.placement.Spec, p))
	status.NumberOfSelectedClusters = reconcile.Int32(len(p.selection.names))
	status.DecisionGroups = p.layout.Groups
	set(fleet.Mark(f.placement.Generation, p.layout.Wanted()))
	return status
}

// refusal returns the first failure that the same write meets again until a person does something; nil when there is
// none.
func refusal(failed error) error {
	all, joined := failed.(interface{ Unwrap() []error })
	if !joined {
		// A webhook that states no code refuses with 400.
		if apierrors.IsInvalid(failed) || apierrors.IsForbidden(failed) || apierrors.IsBadRequest(failed) {
			return failed
		}
		return nil
	}
	for _, err := range all.Unwrap() {
		if refused := refusal(err); refused != nil {
			return refused
		}
	}
	return nil
}

// satisfied returns the condition that reports whether the Placement has all clusters that it asks for, and why others
// are left out.
func satisfied(spec clusterv1beta1.PlacementSpec, p plan) metav1.Condition {
	s := p.selection
	c := metav1.Condition{Type: clusterv1beta1.PlacementConditionSatisfied, Status: metav1.ConditionFalse}
	left := leftOut(s)
	switch {
	case len(s.unbound) > 0:
		c.Reason, c.Message = cmp.Or(p.scope.reason, reasonNoBindings), unboundKept(s.unbound)
	case p.scope.reason != "":
		c.Reason, c.Message = p.scope.reason, p.scope.message
	case s.inSets == 0:
		c.Reason = reasonEmptySets
		c.Message = fmt.Sprintf("No ManagedCluster is in ManagedClusterSet %s", strings.Join(p.scope.sets, ", "))
	case s.eligible == 0:
		c.Reason, c.Message = reasonNoneMatched, "No ManagedCluster matches the placement"+left
	case spec.NumberOfClusters != nil && len(s.names) < int(*spec.NumberOfClusters):
		c.Reason = reasonNotAllScheduled
		c.Message = fmt.Sprintf("%d of %d clusters are selected, no more are eligible%s",
			len(s.names), *spec.NumberOfClusters, left)
	default:
		c.Status, c.Reason, c.Message = metav1.ConditionTrue, reasonAllScheduled, messageDecisionsAreOut+left
	}
	return c
}

// leftOut explains why clusters are left out that a person may expect.
func leftOut(s selection) string {
	var text string
	if n := s.matching - s.eligible; n > 0 {
		text = fmt.Sprintf("; %d of the %d clusters that match are kept out by taints that are not tolerated", n, s.matching)
	}
	if n := len(s.failures); n > 0 {
		clusters := make([]string, n)
		for i, f := range s.failures {
			clusters[i] = f.cluster
		}
		text += fmt.Sprintf("; %d clusters do not match because an expression fails for them (%s), the first by %s",
			n, message.List(clusters, maxNames, ", "), s.failures[0].cause)
	}
	return text
}

// unboundKept names the clusters that stay selected without a binding, with a remedy.
func unboundKept(clusters []string) string {
	return fmt.Sprintf("No ManagedClusterSetBinding in this namespace allows clusters that stay selected, because an "+
		"earlier version selected them without asking: %s. Bind a ManagedClusterSet that has them, for all clusters by a "+
		"ManagedClusterSetBinding with the name global and spec.clusterSet: global; or let them go by annotating the "+
		"placement with %s=%s. Until then only bound sets add clusters",
		message.List(clusters, maxNames, ", "), names.AnnotationSetBindings, names.SetBindingsHonoured)
}
