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
	// annotationSkipClock with value "true" on a ManagedCluster says that its clock is not to be compared.
	annotationSkipClock = "registration.open-cluster-management.io/skip-clock-sync-check"
)

// clockSkew is how far the clock of the agent is ahead of the hub's, negative when it is behind; false when nothing
// tells. It compares the renewTime that the agent wrote with the instant at which the API server says that it was
// written, so that the answer is the same whenever somebody looks: an agent that stopped has no wrong clock.
func clockSkew(l *coordinationv1.Lease) (time.Duration, bool) {
	if l == nil || l.Spec.RenewTime.IsZero() {
		return 0, false
	}
	written := lease.StoredAt(l)
	if written.IsZero() {
		return 0, false
	}
	// The API server counts in whole seconds.
	return l.Spec.RenewTime.Truncate(time.Second).Sub(written), true
}

// TrimLease drops from a cached Lease what nobody here reads. Of the bookkeeping of the API server, it keeps when
// renewTime was written.
func TrimLease(in any) (any, error) {
	l, ok := in.(*coordinationv1.Lease)
	if !ok {
		return in, nil
	}
	written := lease.StoredAt(l)
	l.ManagedFields = nil
	if !written.IsZero() {
		at := metav1.NewTime(written)
		l.ManagedFields = []metav1.ManagedFieldsEntry{{
			Time: &at, FieldsV1: &metav1.FieldsV1{Raw: []byte(`{"f:spec":{"f:renewTime":{}}}`)},
		}}
	}
	return l, nil
}

// within reports whether a skew is small enough for a cluster with this grace.
func within(skew, grace time.Duration) bool { return skew.Abs() < grace }

// clockCondition says whether the clock of an accepted cluster is right; nil when nothing tells. Where somebody said
// that it is not to be compared, it counts as right.
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

// clockConditionChanges reports whether a renewal changes the verdict on the clock of its cluster, whose grace is only asked for
// when no grace at all would make the answer plain: nearly every heartbeat is settled here.
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
