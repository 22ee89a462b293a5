package cluster

import (
	"errors"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/internal/reconcile"
)

const (
	reasonAccepted = "HubClusterAdminAccepted"
	reasonDenied   = "HubClusterAdminDenied"
	reasonError    = "Error"

	reasonNamespaceOwn     = "NamespaceOfCluster"
	reasonNamespaceForeign = "NamespaceOfOthers"
)

// conclude returns the cluster with the conditions that follow from the pass; failed is the error of its steps.
func conclude(f facts, p plan, failed error, before *clusterv1.ManagedCluster) *clusterv1.ManagedCluster {
	if before == nil {
		return nil
	}
	after := before.DeepCopy()
	for _, want := range conditions(f, p, failed) {
		reconcile.SetCondition(&after.Status.Conditions, want, f.now)
	}
	return after
}

// conditions returns the conditions of the cluster that this pass changes.
func conditions(f facts, p plan, failed error) []metav1.Condition {
	var all []metav1.Condition
	switch p.phase {
	case phaseGone:
		return nil
	case phaseNew:
		return namespaceCondition(f, p)
	case phaseDeleting:
		all = append(all, deleting(f, p, failed))
	case phaseRefused, phaseAccepted, phaseDenied:
		all = append(namespaceCondition(f, p), acceptance(f, p, failed)...)
	}
	if synced := clockCondition(f); synced != nil && p.phase == phaseAccepted {
		all = append(all, *synced)
	}
	if quiet := quietCondition(f); quiet != nil && p.phase == phaseAccepted {
		all = append(all, *quiet)
	}
	available := meta.FindStatusCondition(f.cluster.Status.Conditions, clusterv1.ManagedClusterConditionAvailable)
	if p.silent && (available == nil || available.Status != metav1.ConditionUnknown) {
		all = append(all, metav1.Condition{
			Type:   clusterv1.ManagedClusterConditionAvailable,
			Status: metav1.ConditionUnknown, Reason: reasonSilent, Message: messageSilent,
		})
	}
	return all
}

// namespaceCondition returns the condition about the namespace of the cluster, which is there only once there was
// something to say.
func namespaceCondition(f facts, p plan) []metav1.Condition {
	c := metav1.Condition{
		Type: names.ConditionNamespaceReady, Status: metav1.ConditionTrue, Reason: reasonNamespaceOwn,
		Message: "The namespace is that of the cluster", ObservedGeneration: f.cluster.Generation,
	}
	switch {
	case p.foreign != nil:
		c.Status, c.Reason, c.Message = metav1.ConditionFalse, reasonNamespaceForeign, p.foreign.Error()
	case !meta.IsStatusConditionFalse(f.cluster.Status.Conditions, c.Type):
		return nil
	}
	return []metav1.Condition{c}
}

// fellSilent reports whether a status write turned Available to Unknown.
func fellSilent(before, after *clusterv1.ManagedCluster) bool {
	unknown := func(c *clusterv1.ManagedCluster) bool {
		return meta.IsStatusConditionPresentAndEqual(c.Status.Conditions, clusterv1.ManagedClusterConditionAvailable,
			metav1.ConditionUnknown)
	}
	return !unknown(before) && unknown(after)
}

// acceptance returns the condition HubAccepted. A lost race returns none. A temporary error leaves an accepted cluster
// accepted: otherwise its agent would stop renewing its lease.
func acceptance(f facts, p plan, failed error) []metav1.Condition {
	c := metav1.Condition{
		Type: clusterv1.ManagedClusterConditionHubAccepted, Status: metav1.ConditionFalse, Reason: reasonError,
		ObservedGeneration: f.cluster.Generation,
	}
	trouble := errors.Join(p.refused, p.blocked, failed)
	accepted := meta.IsStatusConditionTrue(f.cluster.Status.Conditions, clusterv1.ManagedClusterConditionHubAccepted)
	switch {
	case failed != nil && reconcile.IsLostRace(failed):
		return nil
	case failed != nil && accepted && p.phase == phaseAccepted && passing(failed):
		return nil
	// Nothing new is granted in a namespace that lost its label, but the agent has its access and renews its lease.
	case p.foreign != nil && accepted && p.phase == phaseAccepted && ours(f.have.registration, f.name):
		return nil
	case trouble != nil:
		c.Message = trouble.Error()
	case p.phase == phaseDenied:
		c.Reason, c.Message = reasonDenied, "Denied by hub cluster admin"
		if len(f.works) > 0 {
			c.Message += fmt.Sprintf("; the agent keeps its access to ManifestWorks until none is left: %s",
				summary("ManifestWork", objects(f.works)))
		}
	default:
		c.Status, c.Reason, c.Message = metav1.ConditionTrue, reasonAccepted, "Accepted by hub cluster admin"
	}
	return []metav1.Condition{c}
}

// deleting returns the condition Deleting, which lists what the deletion waits for.
func deleting(f facts, p plan, failed error) metav1.Condition {
	c := metav1.Condition{
		Type: clusterv1.ManagedClusterConditionDeleting, Status: metav1.ConditionFalse,
		ObservedGeneration: f.cluster.Generation,
	}
	trouble := errors.Join(p.blocked, failed)
	switch {
	case trouble != nil && !reconcile.IsLostRace(trouble):
		c.Reason, c.Message = clusterv1.ConditionDeletingReasonResourceError, trouble.Error()
	case p.remaining != "":
		c.Reason, c.Message = clusterv1.ConditionDeletingReasonResourceRemaining, "Waiting for "+p.remaining
		if p.silent {
			c.Message += "; the agent of the cluster does not answer, so the objects with finalizers stay until it does " +
				"or until a user removes their finalizers"
		}
	case trouble != nil:
		c.Reason, c.Message = clusterv1.ConditionDeletingReasonResourceRemaining, "The access of the agent is being removed"
	default:
		c.Status, c.Reason = metav1.ConditionTrue, clusterv1.ConditionDeletingReasonNoResource
		c.Message = "No ManagedClusterAddOn and no ManifestWork of the cluster is left"
	}
	return c
}

// passing reports whether an error may go away by itself.
func passing(err error) bool {
	var many interface{ Unwrap() []error }
	if errors.As(err, &many) {
		for _, part := range many.Unwrap() {
			if !passing(part) {
				return false
			}
		}
		return true
	}
	return !apierrors.IsForbidden(err) && !apierrors.IsInvalid(err)
}

// changedConditions lists the conditions that a status write changed, for the log.
func changedConditions(before, after *clusterv1.ManagedCluster) string {
	var changed []string
	for _, c := range after.Status.Conditions {
		have := meta.FindStatusCondition(before.Status.Conditions, c.Type)
		if have == nil || !equality.Semantic.DeepEqual(*have, c) {
			changed = append(changed, fmt.Sprintf("%s=%s (%s)", c.Type, c.Status, c.Reason))
		}
	}
	return strings.Join(changed, ", ")
}
