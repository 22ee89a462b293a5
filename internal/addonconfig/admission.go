package addonconfig

import clusterv1alpha1 "open-cluster-management.io/api/cluster/v1alpha1"

// Admission is the decision of a rollout about an add-on and a target. Without any, it is not decided yet.
type Admission struct {
	// Granted reports whether the add-on may have the target now, and Reason is why not.
	Granted bool
	Reason  string
	// Failed reports whether the rollout counts the cluster as failed, or timed out, on its way there.
	Failed bool
}

// Decided reports whether the rollout has decided.
func (a Admission) Decided() bool { return a.Granted || a.Reason != "" }

// Planned reports whether a strategy makes a rollout decide which cluster is next. Of all others, every cluster has its
// target at once, whatever fails.
func Planned(strategy clusterv1alpha1.RolloutStrategy) bool {
	return strategy.Type != "" && strategy.Type != clusterv1alpha1.All
}
