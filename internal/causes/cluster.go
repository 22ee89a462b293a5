package causes

import (
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"github.com/spokelet/spokelet/internal/names"
)

// Cluster is what the first cause of a ManagedCluster is judged by.
type Cluster struct {
	Conditions []metav1.Condition
	// Accepted is spec.hubAcceptsClient.
	Accepted bool
	// Deleting reports whether the cluster is being deleted.
	Deleting bool
	// Heartbeat is the last renewal of its Lease; zero where that is not known.
	Heartbeat time.Time
	// Grace is the age of a heartbeat from which on a hub manager calls the cluster silent.
	Grace time.Duration
	// Now is the time by the clock of the reader.
	Now time.Time
}

// OfCluster returns the first cause why a ManagedCluster does not serve; nil when it does. The rules stand in the order
// in which they count: what keeps a cluster out, whether it is heard of, and what its agent reports.
func OfCluster(c Cluster) *Cause {
	if c.Deleting {
		return ofClusterDeletion(c.Conditions)
	}
	for _, rule := range []func(Cluster) *Cause{ofNamespace, ofAcceptance, ofJoining, ofHeartbeat, ofReports} {
		if found := rule(c); found != nil {
			return found
		}
	}
	return nil
}

// ofNamespace returns that the namespace of a cluster belongs to others.
func ofNamespace(c Cluster) *Cause {
	return caseOf(c.Conditions, names.ConditionNamespaceReady, metav1.ConditionFalse, NamespaceOfOthers)
}

// ofJoining returns that the agent of a cluster never reported.
func ofJoining(c Cluster) *Cause {
	if meta.FindStatusCondition(c.Conditions, clusterv1.ManagedClusterConditionAvailable) == nil &&
		meta.FindStatusCondition(c.Conditions, clusterv1.ManagedClusterConditionJoined) == nil {
		return &Cause{Code: ClusterNotJoined}
	}
	return nil
}

// ofHeartbeat returns that a cluster is not heard of any more, or that its API server is down. A hub manager sets
// Available to Unknown after the grace of the Lease. Where none runs the Lease says it: after twice that time, because
// the clock of the reader may differ from that of the hub.
func ofHeartbeat(c Cluster) *Cause {
	const kind = clusterv1.ManagedClusterConditionAvailable
	if found := caseOf(c.Conditions, kind, metav1.ConditionUnknown, ClusterSilent); found != nil {
		return found
	}
	if !c.Heartbeat.IsZero() && c.Now.After(c.Heartbeat.Add(2*c.Grace)) {
		return &Cause{Code: ClusterSilent, Since: c.Heartbeat}
	}
	return caseOf(c.Conditions, kind, metav1.ConditionFalse, ClusterUnavailable)
}

// ofReports returns what the agent of a cluster that is there reports, and what the hub sees of it.
func ofReports(c Cluster) *Cause {
	for _, blocking := range []struct {
		kind string
		code Code
	}{
		{names.ConditionCertificateRotated, CertificateLate},
		{names.ConditionWorksPresent, WorksMissing},
		{clusterv1.ManagedClusterConditionClockSynced, ClocksDiffer},
		{names.ConditionAgentQuiet, AgentNoisy},
	} {
		if found := caseOf(c.Conditions, blocking.kind, metav1.ConditionFalse, blocking.code); found != nil {
			return found
		}
	}
	return nil
}

// ofAcceptance returns why the hub does not let a cluster in; nil where it does. A cluster that the hub accepted once,
// and does not any more, was denied, also while the condition does not say it yet.
func ofAcceptance(of Cluster) *Cause {
	c := meta.FindStatusCondition(of.Conditions, clusterv1.ManagedClusterConditionHubAccepted)
	switch {
	case c == nil && !of.Accepted:
		return &Cause{Code: ClusterNotAccepted}
	case c == nil, of.Accepted && c.Status != metav1.ConditionFalse:
		return nil
	case of.Accepted && c.Reason == reasonAccessError:
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

// ofClusterDeletion returns what the deletion of a cluster waits for. It waits from its first second on, as long as the
// cluster is there: for finalizers of others where nothing of the cluster is left, and for its own where no hub manager
// says anything.
func ofClusterDeletion(conditions []metav1.Condition) *Cause {
	c := meta.FindStatusCondition(conditions, clusterv1.ManagedClusterConditionDeleting)
	if c == nil || c.Status == metav1.ConditionTrue {
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
