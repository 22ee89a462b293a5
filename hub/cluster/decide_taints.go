package cluster

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
)

// healthTaints are the taints that follow the health of a cluster; all others belong to whoever set them.
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
