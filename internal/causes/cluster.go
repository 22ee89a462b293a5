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
		return caseOf(conditions, clusterv1.ManagedClusterConditionDeleting, metav1.ConditionFalse, ClusterDeletion)
	}
	for _, blocking := range []struct {
		kind   string
		status metav1.ConditionStatus
		code   Code
	}{
		{names.ConditionNamespaceReady, metav1.ConditionFalse, NamespaceOfOthers},
		{clusterv1.ManagedClusterConditionHubAccepted, metav1.ConditionFalse, ClusterDenied},
	} {
		if found := caseOf(conditions, blocking.kind, blocking.status, blocking.code); found != nil {
			return found
		}
	}
	if !accepted {
		return &Cause{Code: ClusterNotAccepted}
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

// caseOf returns a cause where a condition has a status; nil where it has not.
func caseOf(conditions []metav1.Condition, kind string, status metav1.ConditionStatus, code Code) *Cause {
	c := meta.FindStatusCondition(conditions, kind)
	if c == nil || c.Status != status {
		return nil
	}
	return &Cause{Code: code, Condition: c, Since: c.LastTransitionTime.Time}
}
