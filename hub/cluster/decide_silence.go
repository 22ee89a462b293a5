package cluster

import (
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"github.com/spokelet/spokelet/internal/decode"
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
	featurePrefix = "feature.open-cluster-management.io/addon-"
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
