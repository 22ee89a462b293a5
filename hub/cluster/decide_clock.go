package cluster

import (
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"github.com/spokelet/spokelet/lease"
)

const (
	reasonSynced     = "ManagedClusterClockSynced"
	messageSynced    = "The clock of the managed cluster is synced with the hub."
	reasonOutOfSync  = "ManagedClusterClockOutOfSync"
	messageOutOfSync = "The clock of hub and agent is out of sync. " +
		"This may cause the Unknown status and affect agent functionalities."
	// annotationSkipClock with value "true" on a ManagedCluster turns the comparison of clocks off.
	annotationSkipClock = "registration.open-cluster-management.io/skip-clock-sync-check"
)

// clockSkew returns how far the clock of the agent is ahead of the hub's, negative when it is behind; false when it is
// unknown. It compares the renewTime that the agent wrote with the time at which the API server stored it, so the
// result does not depend on when it is computed: an agent that stopped has no skew.
func clockSkew(l *coordinationv1.Lease) (time.Duration, bool) {
	if l == nil || l.Spec.RenewTime.IsZero() {
		return 0, false
	}
	written := lease.StoredAt(l)
	if written.IsZero() {
		return 0, false
	}
	// The API server stores whole seconds.
	return l.Spec.RenewTime.Truncate(time.Second).Sub(written), true
}

// TrimLease drops the fields of a cached Lease that nobody here reads. Of managedFields it keeps the time of the last
// write of renewTime.
func TrimLease(in any) (any, error) {
	l, ok := in.(*coordinationv1.Lease)
	if !ok {
		return in, nil
	}
	written := lease.StoredAt(l)
	l.ManagedFields = nil
	// An agent may write as much text as it likes, and nothing here reads who holds the lease.
	l.Spec.HolderIdentity, l.Spec.PreferredHolder = nil, nil
	if !written.IsZero() {
		at := metav1.NewTime(written)
		l.ManagedFields = []metav1.ManagedFieldsEntry{{
			Time: &at, FieldsV1: &metav1.FieldsV1{Raw: []byte(`{"f:spec":{"f:renewTime":{}}}`)},
		}}
	}
	return l, nil
}

// within reports whether a skew is below the grace period of a cluster.
func within(skew, grace time.Duration) bool { return skew.Abs() < grace }

// clockCondition returns the condition ClockSynced of an accepted cluster; nil when the skew is unknown. A cluster that
// opted out counts as synced.
func clockCondition(f facts) *metav1.Condition {
	skew, known := clockSkew(f.lease)
	skipped := f.cluster.Annotations[annotationSkipClock] == "true"
	if !known && !skipped {
		return nil
	}
	c := metav1.Condition{
		Type: clusterv1.ManagedClusterConditionClockSynced, Status: metav1.ConditionTrue,
		Reason: reasonSynced, Message: messageSynced,
	}
	if !skipped && !within(skew, lease.ClusterGrace(f.cluster.Spec.LeaseDurationSeconds)) {
		c.Status, c.Reason, c.Message = metav1.ConditionFalse, reasonOutOfSync, messageOutOfSync
	}
	return &c
}

// clockConditionChanges reports whether a renewal changes the clock condition. grace is called only if the result
// depends on it, which is rare.
func clockConditionChanges(older, newer *coordinationv1.Lease, grace func() time.Duration) bool {
	was, known := clockSkew(older)
	is, knownNow := clockSkew(newer)
	if !knownNow {
		return false
	}
	if !known {
		return true
	}
	if smallest := lease.ClusterGrace(1); within(was, smallest) && within(is, smallest) {
		return false
	}
	asked := grace()
	return within(was, asked) != within(is, asked)
}
