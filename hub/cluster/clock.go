package cluster

import (
	"bytes"
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
	// fieldRenewTime is how the bookkeeping of the API server names spec.renewTime.
	fieldRenewTime = `"f:renewTime"`
)

// clockSkew is how far the clock of the agent is ahead of the hub's, negative when it is behind; false when nothing
// tells. It compares the renewTime that the agent wrote with the instant at which the API server says that it was
// written, so that the answer is the same whenever somebody looks: an agent that stopped has no wrong clock.
func clockSkew(l *coordinationv1.Lease) (time.Duration, bool) {
	if l == nil || l.Spec.RenewTime.IsZero() {
		return 0, false
	}
	written := renewalWritten(l)
	if written.IsZero() {
		return 0, false
	}
	// The API server counts in whole seconds.
	return l.Spec.RenewTime.Truncate(time.Second).Sub(written), true
}

// renewalWritten is when the present renewTime was stored, by the clock of the API server; zero when it did not say.
func renewalWritten(l *coordinationv1.Lease) time.Time {
	var written time.Time
	for _, entry := range l.ManagedFields {
		if entry.Time == nil || entry.FieldsV1 == nil || !bytes.Contains(entry.FieldsV1.Raw, []byte(fieldRenewTime)) {
			continue
		}
		if entry.Time.After(written) {
			written = entry.Time.Time
		}
	}
	return written
}

// TrimLease drops from a cached Lease what nobody here reads. Of the bookkeeping of the API server, it keeps when
// renewTime was written.
func TrimLease(in any) (any, error) {
	l, ok := in.(*coordinationv1.Lease)
	if !ok {
		return in, nil
	}
	written := renewalWritten(l)
	l.ManagedFields = nil
	if !written.IsZero() {
		at := metav1.NewTime(written)
		l.ManagedFields = []metav1.ManagedFieldsEntry{{
			Time: &at, FieldsV1: &metav1.FieldsV1{Raw: []byte(`{"f:spec":{` + fieldRenewTime + `:{}}}`)},
		}}
	}
	return l, nil
}

// within tells whether a skew is small enough for a cluster with this grace.
func within(skew, grace time.Duration) bool { return skew.Abs() < grace }

// clockCondition says whether the clock of an accepted cluster is right; nil when nothing tells.
func clockCondition(f facts) *metav1.Condition {
	skew, known := clockSkew(f.lease)
	if !known {
		return nil
	}
	c := metav1.Condition{
		Type: clusterv1.ManagedClusterConditionClockSynced, Status: metav1.ConditionTrue,
		Reason: reasonSynced, Message: messageSynced,
	}
	skipped := f.cluster.Annotations[annotationSkipClock] == "true"
	if !skipped && !within(skew, lease.ClusterGrace(f.cluster.Spec.LeaseDurationSeconds)) {
		c.Status, c.Reason, c.Message = metav1.ConditionFalse, reasonOutOfSync, messageOutOfSync
	}
	return &c
}

// clockTurned tells whether a renewal changes the verdict on the clock of its cluster, whose grace is only asked for
// when no grace at all would make the answer plain: nearly every heartbeat is settled here.
func clockTurned(older, newer *coordinationv1.Lease, grace func() time.Duration) bool {
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
