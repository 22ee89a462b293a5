package cluster

import (
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"github.com/spokelet/spokelet/internal/reconcile"
	"github.com/spokelet/spokelet/lease"
)

const (
	// reasonSilent and messageSilent are what clusters and add-ons say when the agent is silent.
	reasonSilent  = "ManagedClusterLeaseUpdateStopped"
	messageSilent = "Registration agent stopped updating its lease."
	// overwriteDelay is how long an add-on keeps an answer that its agent wrote while its cluster counts as silent, before
	// it is shown as Unknown again: with a clock that is wrong, agent and hub must not overwrite each other without end.
	overwriteDelay = 30 * time.Second
	// featurePrefix starts the labels that mirror the health of add-ons on their cluster.
	featurePrefix = "feature.open-cluster-management.io/addon-"
)

// decideSilence reports whether the agent fell silent, and when to look again. A cluster that is leaving and has no
// lease has no agent.
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

// decideUnknownAddOns returns the add-ons to be shown as Unknown because the status of their cluster says that it is, so never
// before that was written. An answer that is younger than the silence of the cluster is kept for a while.
func decideUnknownAddOns(f facts, p *plan) []addOnStatus {
	cluster := meta.FindStatusCondition(f.cluster.Status.Conditions, clusterv1.ManagedClusterConditionAvailable)
	if cluster == nil || cluster.Status != metav1.ConditionUnknown {
		return nil
	}
	var unknownAddOns []addOnStatus
	for _, addon := range f.addons {
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

// keepUntil is the instant until which the answer of an add-on stands though its cluster is silent; zero when the
// answer is older than the silence, or when there is none.
func keepUntil(addon *addonv1beta1.ManagedClusterAddOn, cluster *metav1.Condition, now time.Time) time.Time {
	have := meta.FindStatusCondition(addon.Status.Conditions, addonv1beta1.ManagedClusterAddOnConditionAvailable)
	if have == nil || !have.LastTransitionTime.After(cluster.LastTransitionTime.Time) {
		return time.Time{}
	}
	// The answer carries the clock of the agent, which may be ahead of ours by any amount.
	written := have.LastTransitionTime.Time
	if written.After(now) {
		written = now
	}
	return written.Add(overwriteDelay)
}

// mirrorAddons makes the labels of a cluster tell the health of its add-ons, and reports whether that changed any. A
// cluster whose own health is not known yet has no such labels.
func mirrorAddons(cluster *clusterv1.ManagedCluster, addons []*addonv1beta1.ManagedClusterAddOn) bool {
	if meta.FindStatusCondition(cluster.Status.Conditions, clusterv1.ManagedClusterConditionAvailable) == nil {
		return false
	}
	want := map[string]string{}
	for _, addon := range addons {
		key := featurePrefix + addon.Name
		if addon.DeletionTimestamp.IsZero() && len(validation.IsQualifiedName(key)) == 0 {
			want[key] = featureValue(addon)
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

func featureValue(addon *addonv1beta1.ManagedClusterAddOn) string {
	have := meta.FindStatusCondition(addon.Status.Conditions, addonv1beta1.ManagedClusterAddOnConditionAvailable)
	switch {
	case have == nil || have.Status == metav1.ConditionUnknown:
		return "unreachable"
	case have.Status == metav1.ConditionTrue:
		return "available"
	}
	return "unhealthy"
}
