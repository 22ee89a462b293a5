package addonconfig

import (
	"time"

	clusterv1alpha1 "open-cluster-management.io/api/cluster/v1alpha1"
)

// Admission is the decision of a rollout about an add-on and a target. Without any, it is not decided yet.
type Admission struct {
	// Granted reports whether the add-on may have the target now, and Reason is why not.
	Granted bool
	Reason  string
	// Way is how the cluster gets there.
	Way Way
	// Undo reports whether the cluster failed with the target, and is to return from it to what it had before. NotUndone
	// is why that waits where the policy of the add-on says so.
	Undo      bool
	NotUndone string
}

// Decided reports whether the rollout has decided.
func (a Admission) Decided() bool { return a.Granted || a.Reason != "" }

// Way is what a hub manager that starts has to know of how a cluster gets to what the rollout gives, because no other
// condition says so. Condition addon.spokelet.io/RolloutFailed says it.
type Way struct {
	// Stage is empty for most, of which the other conditions say all.
	Stage string
	// Since is since when the deadline counts, in whole seconds; only with ReasonAgain.
	Since time.Time
	// Progress is the transition time of condition Progressing that the rollout saw, in seconds since 1970: a plan holds
	// one for each cluster. Only with a Stage.
	Progress int64
}

// Stages are where on its way a cluster is; they are the reasons of the condition.
const (
	// ReasonFailed is a cluster that failed, ReasonUnavailable one whose agent was not available.
	ReasonFailed      = "Failed"
	ReasonUnavailable = "AgentNotAvailable"
	// ReasonTimedOut is one that was not ready within the progressDeadline.
	ReasonTimedOut = "TimedOut"
	// ReasonAwaits is one that awaits what its own spec names, since before it could fail.
	ReasonAwaits = "AwaitsOwnConfiguration"
	// ReasonAgain is one that awaited that, and has a whole progressDeadline since it became known.
	ReasonAgain = "DeadlineBeganAgain"
	// ReasonUndone is one that failed, and has what it had before. It does not get again what it failed with.
	ReasonUndone = "Undone"
	// ReasonUndoneBefore is one that returned before from what the rollout does not give now. It is no stage.
	ReasonUndoneBefore = "UndoneBefore"
)

// Counts reports whether the rollout counts the cluster as a failure.
func (w Way) Counts() bool {
	return w.Stage == ReasonFailed || w.Stage == ReasonUnavailable || w.Stage == ReasonTimedOut || w.Stage == ReasonUndone
}

// Planned reports whether a strategy makes a rollout decide which cluster is next. Of all others, every cluster has its
// target at once, whatever fails.
func Planned(strategy clusterv1alpha1.RolloutStrategy) bool {
	return strategy.Type != "" && strategy.Type != clusterv1alpha1.All
}
