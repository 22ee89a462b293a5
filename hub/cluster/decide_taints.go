package cluster

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
)

// healthTaints are the taints that follow the health of a cluster; every other is left to whoever made it.
func healthTaints() []string {
	return []string{clusterv1.ManagedClusterTaintUnavailable, clusterv1.ManagedClusterTaintUnreachable}
}

// healthTaint is the taint that a cluster in this health has; empty when it has none (contract, registration 1.10).
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

// taint makes the taints of a cluster follow its health as the status tells it, and reports whether that changed any.
// One that is there keeps the time at which it was added, because tolerations count from there.
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

// setTaintTimes sets when taints were added, where that is not said or cannot be: before the cluster was created, as in
// one that comes from a backup, or in the future. It reports whether that changed any. Authors state no time; an
// admission policy refuses it when they change a cluster.
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
