package cluster

import (
	"slices"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"github.com/spokelet/spokelet/internal/decode"
	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/internal/reconcile"
	"github.com/spokelet/spokelet/lease"
)

const (
	// reasonSilent and messageSilent explain Available=Unknown of a cluster, and of its add-ons, whose agent is silent.
	reasonSilent  = "ManagedClusterLeaseUpdateStopped"
	messageSilent = "Registration agent stopped updating its lease."
	// overwriteDelay is how long an answer that an agent wrote on an add-on stands while its cluster is Unknown. Without
	// it, an agent with a wrong clock and the hub would overwrite each other without end.
	overwriteDelay = 30 * time.Second
	// featurePrefix is the prefix of the labels that mirror the health of add-ons on their cluster.
	featurePrefix = names.PrefixFeature + "addon-"
	// featureUnreachable is the value for an add-on whose agent does not report.
	featureUnreachable = "unreachable"
	// labelPatience is how long the label of a new add-on waits for the first report of its agent, from when its manager
	// first wrote a condition if it was installed for a ClusterManagementAddOn, and installPatience how long it waits in
	// all: when one is installed on all clusters, the managers come to each of them by and by.
	labelPatience, installPatience = 30 * time.Second, 10 * time.Minute
)

// decideSilence decides whether the agent is silent, and when to check again. A cluster that is being deleted and has
// no lease has no agent.
func decideSilence(f facts, p *plan) {
	if f.lease == nil {
		p.silent = p.phase == phaseDeleting
		return
	}
	verdict := lease.Judge(f.lease, f.now, lease.ClusterGrace(f.cluster.Spec.LeaseDurationSeconds))
	p.silent = verdict.State == lease.Stale
	if !p.silent {
		p.wake = reconcile.Earliest(p.wake, verdict.ExpiresAt)
	}
}

// decideUnknownAddOns returns the add-ons that become Unknown because the status of their cluster is Unknown. An answer
// that is younger than the silence of the cluster is kept for a while.
func decideUnknownAddOns(f facts, p *plan) []addOnStatus {
	cluster := meta.FindStatusCondition(f.cluster.Status.Conditions, clusterv1.ManagedClusterConditionAvailable)
	if cluster == nil || cluster.Status != metav1.ConditionUnknown {
		return nil
	}
	var unknownAddOns []addOnStatus
	for _, addon := range f.addons {
		if _, undecodable := decode.Unknown(addon); undecodable {
			continue
		}
		after := addon.DeepCopy()
		if !reconcile.SetCondition(&after.Status.Conditions, metav1.Condition{
			Type:   addonv1beta1.ManagedClusterAddOnConditionAvailable,
			Status: metav1.ConditionUnknown, Reason: cluster.Reason, Message: cluster.Message,
		}, f.now) {
			continue
		}
		if until := keepUntil(addon, cluster, f.now); until.After(f.now) {
			p.wake = reconcile.Earliest(p.wake, until)
			continue
		}
		unknownAddOns = append(unknownAddOns, addOnStatus{before: addon, after: after})
	}
	return unknownAddOns
}

// keepUntil returns the instant until which the answer of an add-on stands; zero when it is older than the silence, or
// absent.
func keepUntil(addon *addonv1beta1.ManagedClusterAddOn, cluster *metav1.Condition, now time.Time) time.Time {
	have := meta.FindStatusCondition(addon.Status.Conditions, addonv1beta1.ManagedClusterAddOnConditionAvailable)
	if have == nil || !have.LastTransitionTime.After(cluster.LastTransitionTime.Time) {
		return time.Time{}
	}
	// The transition time comes from the clock of the agent, which may be ahead of ours by any amount.
	written := have.LastTransitionTime.Time
	if written.After(now) {
		written = now
	}
	return written.Add(overwriteDelay)
}

// mirrorAddons sets the feature labels of a cluster from the health of its add-ons, and reports whether any changed. A
// cluster of unknown health has no such labels. When a label must be written although the agent of its add-on has not
// reported, those of all others that have not are written with it: each on its own was about an eighth of the requests
// of installing 20 add-ons on 3,000 clusters.
func mirrorAddons(
	cluster *clusterv1.ManagedCluster, addons []*addonv1beta1.ManagedClusterAddOn, now time.Time,
) bool {
	if meta.FindStatusCondition(cluster.Status.Conditions, clusterv1.ManagedClusterConditionAvailable) == nil {
		return false
	}
	want := map[string]string{}
	var awaited []string
	silent := false // whether an add-on gets its label without a report
	for _, addon := range addons {
		key := featurePrefix + addon.Name
		if !addon.DeletionTimestamp.IsZero() || len(validation.IsQualifiedName(key)) > 0 {
			continue
		}
		if _, undecodable := decode.Unknown(addon); undecodable {
			if value, labelled := cluster.Labels[key]; labelled {
				want[key] = value
			}
			continue
		}
		if labelAwaited(cluster, addon).After(now) {
			awaited = append(awaited, key)
			continue
		}
		want[key] = featureValue(addon)
		_, labelled := cluster.Labels[key]
		silent = silent || !labelled && want[key] == featureUnreachable
	}
	if silent {
		for _, key := range awaited {
			want[key] = featureUnreachable
		}
	}
	changed := false
	for key := range cluster.Labels {
		if _, ok := want[key]; !ok && strings.HasPrefix(key, featurePrefix) {
			delete(cluster.Labels, key)
			changed = true
		}
	}
	return addLabels(cluster, want) || changed
}

// labelAwaited returns until when a new add-on gets no label because its agent has not reported yet; zero when it gets
// one now. Nearly every agent reports in that time, and a label is a write of the whole cluster, which wakes every
// Placement. On a cluster that is not well, nothing is waited for.
func labelAwaited(cluster *clusterv1.ManagedCluster, addon *addonv1beta1.ManagedClusterAddOn) time.Time {
	_, labelled := cluster.Labels[featurePrefix+addon.Name]
	if _, undecodable := decode.Unknown(addon); undecodable {
		return time.Time{}
	}
	well := meta.IsStatusConditionTrue(cluster.Status.Conditions, clusterv1.ManagedClusterConditionAvailable)
	if labelled || !well || featureValue(addon) != featureUnreachable {
		return time.Time{}
	}
	return labelDue(addon)
}

// labelDue returns when a new add-on gets its label whether or not its agent has reported.
func labelDue(addon *addonv1beta1.ManagedClusterAddOn) time.Time {
	created, conditions := addon.CreationTimestamp.Time, addon.Status.Conditions
	installed := slices.ContainsFunc(addon.OwnerReferences, func(owner metav1.OwnerReference) bool {
		return owner.Kind == "ClusterManagementAddOn" && owner.Name == addon.Name
	})
	if !installed {
		return created.Add(labelPatience)
	}
	last := created.Add(installPatience)
	if len(conditions) == 0 {
		return last
	}
	first := slices.MinFunc(conditions, func(a, b metav1.Condition) int {
		return a.LastTransitionTime.Compare(b.LastTransitionTime.Time)
	})
	due, least := first.LastTransitionTime.Add(labelPatience), created.Add(labelPatience)
	switch { // The clock that wrote it may be ahead or behind.
	case due.After(last):
		return last
	case due.Before(least):
		return least
	}
	return due
}

// labelsAwaited returns the next instant at which an add-on gets its label whether or not its agent has reported; zero
// for none.
func labelsAwaited(f facts) time.Time {
	var next time.Time
	for _, addon := range f.addons {
		if at := labelAwaited(f.cluster, addon); at.After(f.now) && addon.DeletionTimestamp.IsZero() {
			next = reconcile.Earliest(next, at)
		}
	}
	return next
}

func featureValue(addon *addonv1beta1.ManagedClusterAddOn) string {
	have := meta.FindStatusCondition(addon.Status.Conditions, addonv1beta1.ManagedClusterAddOnConditionAvailable)
	switch {
	case have == nil || have.Status == metav1.ConditionUnknown:
		return featureUnreachable
	case have.Status == metav1.ConditionTrue:
		return "available"
	}
	return "unhealthy"
}

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
			Time: &at, FieldsV1: metav1.NewFieldsV1(`{"f:spec":{"f:renewTime":{}}}`),
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

// healthTaints are the taints that follow the health of a cluster; all others belong to the user who set them.
func healthTaints() []string {
	return []string{clusterv1.ManagedClusterTaintUnavailable, clusterv1.ManagedClusterTaintUnreachable}
}

// healthTaint returns the taint for the health of a cluster; empty when it needs none (docs/reference/registration.md,
// "Status of a cluster").
func healthTaint(conditions []metav1.Condition) string {
	available := meta.FindStatusCondition(conditions, clusterv1.ManagedClusterConditionAvailable)
	switch {
	case available == nil || available.Status == metav1.ConditionUnknown:
		return clusterv1.ManagedClusterTaintUnreachable
	case available.Status == metav1.ConditionFalse:
		return clusterv1.ManagedClusterTaintUnavailable
	}
	return ""
}

// taint sets the taints that follow the health of a cluster, and reports whether any changed. An existing taint keeps
// its timeAdded, because tolerations count from it.
func taint(cluster *clusterv1.ManagedCluster, now time.Time) bool {
	want := healthTaint(cluster.Status.Conditions)
	isOurs := func(t clusterv1.Taint) bool {
		return t.Effect == clusterv1.TaintEffectNoSelect && slices.Contains(healthTaints(), t.Key)
	}
	kept := make([]clusterv1.Taint, 0, len(cluster.Spec.Taints)+1)
	there := want == ""
	for _, t := range cluster.Spec.Taints {
		switch {
		case !isOurs(t):
			kept = append(kept, t)
		case t.Key == want && !there:
			kept, there = append(kept, t), true
		}
	}
	if !there {
		kept = append(kept, clusterv1.Taint{
			Key: want, Effect: clusterv1.TaintEffectNoSelect, TimeAdded: metav1.NewTime(now),
		})
	}
	if slices.Equal(kept, cluster.Spec.Taints) {
		return false
	}
	cluster.Spec.Taints = kept
	return true
}

// setTaintTimes sets timeAdded where it is absent or impossible: before the creation of the cluster, as after a restore
// from a backup, or in the future. It reports whether any changed. An admission policy keeps authors from setting
// timeAdded.
func setTaintTimes(cluster *clusterv1.ManagedCluster, now time.Time) bool {
	created, changed := cluster.CreationTimestamp.Time, false
	if now.Before(created) {
		now = created // The clock of the API server is ahead of ours.
	}
	for i := range cluster.Spec.Taints {
		added := &cluster.Spec.Taints[i].TimeAdded
		if added.IsZero() || added.Time.Before(created) || added.After(now) {
			*added, changed = metav1.NewTime(now), true
		}
	}
	return changed
}
