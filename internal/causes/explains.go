package causes

import "slices"

const (
	// Reasons of conditions about the deletion of an add-on: those of our hub manager, and the last one of OCM's, too.
	reasonHookFailed       = "HookFailed"
	reasonHookDeadline     = "HookDeadlineExceeded"
	reasonWaitingForHook   = "WaitingForHook"
	reasonHookNotCompleted = "HookManifestIsNotCompleted"
)

// OnCluster reports whether the cause is about what a managed cluster does, and not about what the hub does: a cluster
// that is silent cannot do it, and cannot say that it did.
func (c *Cause) OnCluster() bool {
	if c.Code == DeletionWaits {
		return c.Condition != nil && (c.Condition.Reason == reasonWaitingForHook ||
			c.Condition.Reason == reasonHookNotCompleted)
	}
	return slices.Contains([]Code{
		ClusterSilent, LeaseStopped, LeaseMissing, HealthUnknown, ManifestsAwaited, ProbeFailed, NotApplied,
		WorkloadNotReady,
	}, c.Code)
}

// CutOff reports whether the trouble of a cluster keeps it from the hub: it is not let in, or not heard of, or does not
// reach its own API server. Then nothing is known of an add-on that says that it is well.
func (c *Cause) CutOff() bool {
	return c != nil && c.Code != ClusterDeletion && (c.isOut() || c.isIll())
}

// isOut reports whether a cluster is not let in, has not come yet, or is leaving.
func (c *Cause) isOut() bool {
	return slices.Contains([]Code{
		ClusterNotAccepted, ClusterDenied, NamespaceOfOthers, AccessFailed, ClusterDeletion, ClusterNotJoined,
	}, c.Code)
}

// isIll reports whether a cluster that was in does not do what it has to do.
func (c *Cause) isIll() bool { return c.Code == ClusterSilent || c.Code == ClusterUnavailable }

// Explains reports whether trouble of a cluster is the first cause of trouble of an add-on on it. A cluster that is not
// in explains all; one that is silent or ill explains what the cluster does, and not what the hub does. A cluster that
// is leaving waits for its add-ons to go, and not the other way round.
func Explains(cluster, addOn *Cause) bool {
	switch {
	case cluster == nil || addOn == nil:
		return false
	case cluster.Code == ClusterDeletion && (addOn.Code == DeletionWaits || addOn.Code == HookFailed):
		return false
	}
	return cluster.isOut() || cluster.isIll() && addOn.OnCluster()
}
