package causes

import (
	"encoding/json"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"

	"github.com/spokelet/spokelet/internal/names"
)

const (
	// WaitsForTurn begins what the hub manager says of an add-on that keeps its configuration because others move first.
	WaitsForTurn = "waits for its turn in the rollout: "
	// HasStopped begins what the hub manager says of a rollout in which more clusters failed than it tolerates.
	HasStopped = "the rollout stopped: "
	// NotConfigured is all that OCM's hub says of an add-on that waits for its turn, and how ours begins.
	NotConfigured = "Configurations updated and not configured yet"
)

// Stage is how far an add-on on a cluster is with the configuration that it is to have.
type Stage string

// The stages of an add-on that exists.
const (
	StageFailed   Stage = "failed"
	StageMoving   Stage = "moving"
	StageWaiting  Stage = "waiting"
	StageComplete Stage = "complete"
)

// StageOf returns how far an add-on is by its conditions, and what they say of that; differs reports whether a
// configuration that it is to have is not in force.
func StageOf(conditions []metav1.Condition, differs bool) (Stage, string) {
	failed := meta.FindStatusCondition(conditions, names.ConditionRolloutFailed)
	configured := meta.FindStatusCondition(conditions, addonv1beta1.ManagedClusterAddOnConditionConfigured)
	progressing := meta.FindStatusCondition(conditions, addonv1beta1.ManagedClusterAddOnConditionProgressing)
	switch {
	case failed != nil && failed.Status == metav1.ConditionTrue:
		return StageFailed, failed.Message
	case configured != nil && configured.Status == metav1.ConditionFalse:
		return StageWaiting, configured.Message
	case Completed(conditions) && differs:
		return StageWaiting, "it is to have another configuration, and the hub manager does not say yet that it moves"
	case Completed(conditions):
		return StageComplete, ""
	case progressing == nil:
		return StageWaiting, "no hub manager says how far it is"
	case progressing.Reason == addonv1beta1.ProgressingReasonFailed:
		return StageFailed, progressing.Message
	}
	return StageMoving, progressing.Message
}

// heldDigest is how many characters of a digest of clusters stand for one.
const heldDigest = 8

// RemovalsHeld returns from how many clusters the removal of an add-on is held, by the annotations of its
// ClusterManagementAddOn (docs/reference/hub.md, "Removal").
func RemovalsHeld(annotations map[string]string) int {
	if annotations[names.AnnotationRemovalHeld] == "" {
		return 0
	}
	var state struct {
		Held string `json:"held"`
	}
	if json.Unmarshal([]byte(annotations[names.AnnotationRemovalState]), &state) != nil {
		return 1 // It is held, and how many there are is not known.
	}
	return max(len(state.Held)/heldDigest, 1)
}

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
