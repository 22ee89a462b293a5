package causes

import (
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"github.com/spokelet/spokelet/internal/names"
)

// OfCluster returns the first cause why a ManagedCluster does not serve; nil when it does. accepted is
// spec.hubAcceptsClient.
func OfCluster(conditions []metav1.Condition, accepted, deleting bool) *Cause {
	if deleting {
		return ofClusterDeletion(conditions)
	}
	found := caseOf(conditions, names.ConditionNamespaceReady, metav1.ConditionFalse, NamespaceOfOthers)
	if found != nil {
		return found
	}
	if found := ofAcceptance(conditions, accepted); found != nil {
		return found
	}
	available := meta.FindStatusCondition(conditions, clusterv1.ManagedClusterConditionAvailable)
	switch {
	case available == nil && meta.FindStatusCondition(conditions, clusterv1.ManagedClusterConditionJoined) == nil:
		return &Cause{Code: ClusterNotJoined}
	case available != nil && available.Status == metav1.ConditionUnknown:
		return &Cause{Code: ClusterSilent, Condition: available, Since: available.LastTransitionTime.Time}
	case available != nil && available.Status == metav1.ConditionFalse:
		return &Cause{Code: ClusterUnavailable, Condition: available, Since: available.LastTransitionTime.Time}
	}
	for _, blocking := range []struct {
		kind string
		code Code
	}{
		{names.ConditionCertificateRotated, CertificateLate},
		{names.ConditionWorksPresent, WorksMissing},
		{clusterv1.ManagedClusterConditionClockSynced, ClocksDiffer},
		{names.ConditionAgentQuiet, AgentNoisy},
	} {
		if found := caseOf(conditions, blocking.kind, metav1.ConditionFalse, blocking.code); found != nil {
			return found
		}
	}
	return nil
}

// ofAcceptance returns why the hub does not let a cluster in; nil where it does. A cluster that the hub accepted once,
// and does not any more, was denied, also while the condition does not say it yet.
func ofAcceptance(conditions []metav1.Condition, accepted bool) *Cause {
	c := meta.FindStatusCondition(conditions, clusterv1.ManagedClusterConditionHubAccepted)
	switch {
	case c == nil && !accepted:
		return &Cause{Code: ClusterNotAccepted}
	case c == nil, accepted && c.Status != metav1.ConditionFalse:
		return nil
	case accepted && c.Reason == reasonAccessError:
		return &Cause{Code: AccessFailed, Condition: c, Since: c.LastTransitionTime.Time}
	}
	denied := &Cause{Code: ClusterDenied}
	if c.Status == metav1.ConditionFalse {
		denied.Condition, denied.Since = c, c.LastTransitionTime.Time
	}
	return denied
}

// reasonAccessError is the reason of HubAcceptedManagedCluster where the hub accepts a cluster and cannot give it what
// belongs to that.
const reasonAccessError = "Error"

// ofClusterDeletion returns what the deletion of a cluster waits for; nil where it has just begun. Where nothing of it
// is left, and it is there, it waits for finalizers of others.
func ofClusterDeletion(conditions []metav1.Condition) *Cause {
	c := meta.FindStatusCondition(conditions, clusterv1.ManagedClusterConditionDeleting)
	switch {
	case c == nil:
		return nil
	case c.Status == metav1.ConditionTrue:
		return &Cause{Code: ClusterDeletion}
	}
	return &Cause{Code: ClusterDeletion, Condition: c, Since: c.LastTransitionTime.Time}
}

// caseOf returns a cause where a condition has a status; nil where it has not.
func caseOf(conditions []metav1.Condition, kind string, status metav1.ConditionStatus, code Code) *Cause {
	c := meta.FindStatusCondition(conditions, kind)
	if c == nil || c.Status != status {
		return nil
	}
	return &Cause{Code: code, Condition: c, Since: c.LastTransitionTime.Time}
}
