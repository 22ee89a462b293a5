package status

import (
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/spokelet/spokelet/agent/work/manifest"
	"github.com/spokelet/spokelet/agent/work/watch"
	"github.com/spokelet/spokelet/internal/message"
	"github.com/spokelet/spokelet/internal/reconcile"
)

// Condition type, reasons and messages of docs/reference/work.md, "Status of a work", that the API module does not
// name.
const (
	conditionFeedback = "StatusFeedbackSynced"

	reasonWorkApplied     = "AppliedManifestWorkComplete"
	reasonWorkFailed      = "AppliedManifestWorkFailed"
	reasonAvailable       = "ResourceAvailable"
	reasonNotAvailable    = "ResourceNotAvailable"
	reasonFetchFailed     = "FetchingResourceFailed"
	reasonIncomplete      = "IncompleteResourceMeta"
	reasonAllAvailable    = "ResourcesAvailable"
	reasonSomeMissing     = "ResourcesNotAvailable"
	reasonSomeUnknown     = "ResourcesStatusUnknown"
	reasonNoFeedback      = "NoStatusFeedbackSynced"
	reasonFeedback        = "StatusFeedbackSynced"
	reasonFeedbackFailed  = "StatusFeedbackSyncFailed"
	reasonRulesAggregated = "ConditionRulesAggregated"
	reasonDeleting        = "WorkDeleting"

	deletingText = "ManifestWork is being deleted"
	failedText   = "Failed to apply manifest work"
)

// maxMessage is the longest message that the API takes, in bytes.
const maxMessage = 32768

// Object holds what a pass learned about the object of one manifest.
type Object struct {
	// Err is why the manifest is not applied; nil when it is.
	Err error
	// Presence is whether the object exists, and ReadErr why that is unknown.
	Presence manifest.Presence
	ReadErr  error
	// Feedback holds what the rules read from the object; nil when there is none.
	Feedback *watch.Feedback
	// Behind reports that the object was frozen before this generation of its manifest could be applied.
	Behind bool
}

// Conclude computes the whole status of a work; objects has one element for each manifest.
func Conclude(work *workv1.ManifestWork, manifests []manifest.Manifest, objects []Object, now time.Time,
) workv1.ManifestWorkStatus {
	status := workv1.ManifestWorkStatus{Conditions: slices.Clone(work.Status.Conditions)}
	at, room := stamp{work.Generation, now}, roomFor(work)
	objects = withinBounds(objects, valuesShare(room))
	before := Index(work.Status.ResourceStatus.Manifests)
	for i := range manifests {
		former := before.Find(manifests[i].Meta())
		status.ResourceStatus.Manifests = append(status.ResourceStatus.Manifests,
			concludeManifest(at, &manifests[i], &objects[i], former))
	}
	concludeWork(at, &status)
	fitMessages(&status, room)
	return status
}

// concludeManifest computes the status of one manifest; before is its status of an earlier pass or nil.
func concludeManifest(at stamp, m *manifest.Manifest, o *Object, before *workv1.ManifestCondition,
) workv1.ManifestCondition {
	state := workv1.ManifestCondition{ResourceMeta: m.Meta()}
	if before != nil {
		state.Conditions = slices.Clone(before.Conditions)
		state.StatusFeedbacks = before.StatusFeedbacks
	}
	applied := appliedCondition(o, at.generation)
	if o.Behind && meta.IsStatusConditionTrue(state.Conditions, workv1.ManifestApplied) {
		// The manifest of an earlier generation is in force, so the condition stays as it was then.
		applied = *meta.FindStatusCondition(state.Conditions, workv1.ManifestApplied)
	}
	if have := meta.FindStatusCondition(state.Conditions, applied.Type); have != nil &&
		have.ObservedGeneration != applied.ObservedGeneration {
		meta.RemoveStatusCondition(&state.Conditions, applied.Type)
	}
	set(&state.Conditions, applied, at.now)
	set(&state.Conditions, availableCondition(m, o), at.now)
	concludeFeedback(&state, m, o, at.now)
	concludeRules(at, &state, m, o)
	return state
}

// appliedCondition is the condition Applied of a manifest.
func appliedCondition(o *Object, generation int64) metav1.Condition {
	applied := metav1.Condition{
		Type: workv1.ManifestApplied, Status: metav1.ConditionTrue, ObservedGeneration: generation,
		Reason: workv1.AppliedManifestComplete, Message: "Apply manifest complete",
	}
	if o.Err != nil {
		applied.Status = metav1.ConditionFalse
		applied.Reason, applied.Message = appliedFailure(o.Err)
	}
	return applied
}

// appliedFailure is the reason and the message of the condition Applied for an error.
func appliedFailure(err error) (reason, text string) {
	reason = workv1.AppliedManifestFailed
	if permanent := manifest.AsFailure(err); permanent != nil {
		reason = permanent.Reason
	}
	if reason == workv1.AppliedManifestSSAIgnoreFieldError {
		return reason, "Failed to process ignoreFields: " + err.Error()
	}
	return reason, "Failed to apply manifest: " + err.Error()
}

// availableCondition is the condition Available of a manifest.
func availableCondition(m *manifest.Manifest, o *Object) metav1.Condition {
	available := metav1.Condition{Type: workv1.ManifestAvailable}
	switch {
	case !m.Mapped():
		available.Status, available.Reason = metav1.ConditionUnknown, reasonIncomplete
		available.Message = "Resource meta is incomplete"
	case o.Presence == manifest.Present:
		available.Status, available.Reason = metav1.ConditionTrue, reasonAvailable
		available.Message = "Resource is available"
	case o.Presence == manifest.Absent:
		available.Status, available.Reason = metav1.ConditionFalse, reasonNotAvailable
		available.Message = "Resource is not available"
	default:
		available.Status, available.Reason = metav1.ConditionUnknown, reasonFetchFailed
		available.Message = fmt.Sprintf("Failed to fetch resource: %v", o.ReadErr)
	}
	return available
}

// concludeFeedback sets the feedback values and their condition. Values that could not be read stay as they were, an
// object that is gone has none.
func concludeFeedback(state *workv1.ManifestCondition, m *manifest.Manifest, o *Object, now time.Time) {
	if o.Presence == manifest.Unknown {
		return
	}
	var values []workv1.FeedbackValue
	failed := ""
	if o.Feedback != nil {
		values, failed = o.Feedback.Values, o.Feedback.Err
	}
	if o.Presence == manifest.Absent {
		failed = "the resource does not exist"
	}
	synced := metav1.Condition{Type: conditionFeedback, Status: metav1.ConditionTrue, Reason: reasonFeedback}
	switch {
	case len(m.Options.Feedback) == 0:
		synced.Reason = reasonNoFeedback
	case failed != "":
		synced.Status, synced.Reason = metav1.ConditionFalse, reasonFeedbackFailed
		synced.Message = "Sync status feedback failed with error " + failed
	}
	if !equality.Semantic.DeepEqual(state.StatusFeedbacks.Values, values) {
		state.StatusFeedbacks.Values = values
		meta.RemoveStatusCondition(&state.Conditions, conditionFeedback)
	}
	set(&state.Conditions, synced, now)
}

// set merges a condition whose observedGeneration is final.
func set(conditions *[]metav1.Condition, c metav1.Condition, now time.Time) {
	c.Message = message.Cut(c.Message, maxMessage)
	reconcile.SetCondition(conditions, c, now)
}

// With returns the status of a work with one condition of the work more, as of its generation.
func With(work *workv1.ManifestWork, c metav1.Condition, now time.Time) workv1.ManifestWorkStatus {
	status := *work.Status.DeepCopy()
	stamp{work.Generation, now}.set(&status.Conditions, c)
	return status
}

// stamp is as of which generation of a work, and when, its conditions are concluded.
type stamp struct {
	generation int64
	now        time.Time
}

// set merges a condition as of the generation.
func (s stamp) set(conditions *[]metav1.Condition, c metav1.Condition) {
	c.ObservedGeneration = s.generation
	set(conditions, c, s.now)
}
