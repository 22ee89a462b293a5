package causes

import (
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
)

const (
	// WaitsForTurn begins what the hub manager says of an add-on that keeps its configuration because others move first.
	WaitsForTurn = "waits for its turn in the rollout: "
	// HasStopped begins what the hub manager says of a rollout in which more clusters failed than it tolerates.
	HasStopped = "the rollout stopped: "
	// NotConfigured is all that OCM's hub says of an add-on that waits for its turn, and how ours begins.
	NotConfigured = "Configurations updated and not configured yet"
)

// Waits returns the condition Configured of an add-on that waits for its turn in a rollout; nil for any other. Nothing
// is wrong with it by that: it works with the configuration that it has.
func Waits(conditions []metav1.Condition) *metav1.Condition {
	c := meta.FindStatusCondition(conditions, addonv1beta1.ManagedClusterAddOnConditionConfigured)
	if c == nil || c.Status != metav1.ConditionFalse {
		return nil
	}
	said := strings.TrimSuffix(strings.TrimSpace(c.Message), ".")
	if said == NotConfigured || strings.HasPrefix(said, NotConfigured+": "+WaitsForTurn) {
		return c
	}
	return nil
}

// Stopped returns the condition Progressing of a placement whose rollout does not go on, because more clusters failed
// than it tolerates; nil for any other.
func Stopped(conditions []metav1.Condition) *metav1.Condition {
	c := meta.FindStatusCondition(conditions, addonv1beta1.ManagedClusterAddOnConditionProgressing)
	switch {
	case c == nil:
		return nil
	case c.Reason == addonv1beta1.ProgressingReasonFailed, c.Status == metav1.ConditionUnknown:
		return c
	case strings.Contains(c.Message, HasStopped):
		return c
	}
	return nil
}
