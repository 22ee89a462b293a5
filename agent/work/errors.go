package work

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	workv1 "open-cluster-management.io/api/work/v1"
)

// failure is a reason for which a manifest is not applied and that lasts until the manifest or the object changes, so
// that trying again soon is of no use.
type failure struct {
	// reason is that of the condition Applied of the manifest.
	reason  string
	message string
}

// Error is the message without the words with which the condition introduces it.
func (f *failure) Error() string { return f.message }

// unreadableError says that it is not known whether the object exists.
type unreadableError struct {
	// because is why the manifest is not applied, when that is something else than read.
	because error
	// read is why the object could not be read.
	read error
}

// Error prefers the reason for which the manifest is not applied.
func (e unreadableError) Error() string { return e.Unwrap().Error() }

// Unwrap returns the reason for which the manifest is not applied.
func (e unreadableError) Unwrap() error {
	if e.because != nil {
		return e.because
	}
	return e.read
}

// postponedError says that the object is to be put right later, because it was put right too often.
type postponedError struct{ until time.Time }

// Error says when.
func (e postponedError) Error() string {
	return fmt.Sprintf("postponed until %s", e.until.Format(time.RFC3339))
}

// isRefusal reports whether the API server understood a request and refused it: for want of a right, by a quota or by
// admission, or because the object is invalid. The same request is refused again until somebody changes something. A
// namespace that is being deleted goes by itself.
func isRefusal(err error) bool {
	var answer apierrors.APIStatus
	if !errors.As(err, &answer) || apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
		return false
	}
	switch answer.Status().Code {
	case http.StatusBadRequest, http.StatusForbidden, http.StatusMethodNotAllowed, http.StatusRequestEntityTooLarge,
		http.StatusUnsupportedMediaType, http.StatusUnprocessableEntity:
		return true
	}
	return false
}

// lastingFailure returns the failure that an error stands for; nil when the same request may succeed soon.
func lastingFailure(err error) *failure {
	var known *failure
	switch {
	case errors.As(err, &known):
		return known
	case isRefusal(err):
		return &failure{reason: workv1.AppliedManifestFailed, message: err.Error()}
	}
	return nil
}

// nameFailure is why no AppliedManifestWork can have the name that belongs to a work; nil when one can.
func nameFailure(work, name string) *failure {
	over := len(name) - validation.DNS1123SubdomainMaxLength
	if over <= 0 {
		return nil
	}
	return &failure{reason: reasonWorkFailed, message: fmt.Sprintf(
		"the name of a ManifestWork may have %d characters at most and this one has %d; create the work under a shorter name",
		len(work)-over, len(work))}
}

// unlistedCondition is the condition Applied of a work whose AppliedManifestWork cannot be written; nil when trying
// again may help without anybody's doing. Lasting reports whether trying again is of no use at all.
func unlistedCondition(err error) (applied *metav1.Condition, lasting bool) {
	const listing = ": the AppliedManifestWork, which lists its objects on the managed cluster, cannot be written, so " +
		"nothing is applied: "
	applied = &metav1.Condition{Type: workv1.WorkApplied, Status: metav1.ConditionFalse, Reason: reasonWorkFailed}
	var wrong *failure
	switch {
	case errors.As(err, &wrong):
		applied.Message = failedText + ": " + wrong.message
		return applied, true
	case apierrors.IsForbidden(err) && strings.Contains(err.Error(), " cannot "):
		applied.Message = failedText + listing + err.Error() + "; grant the agent get, list, watch, create, update, patch " +
			"and delete of appliedmanifestworks on the managed cluster"
	case kindGone(err), meta.IsNoMatchError(err):
		applied.Message = failedText + listing + err.Error() + "; install the CustomResourceDefinition of " +
			"AppliedManifestWorks on the managed cluster"
	case isRefusal(err):
		applied.Message = failedText + listing + err.Error() + "; correct what refuses it on the managed cluster"
	default:
		return nil, false
	}
	return applied, false
}

// appliedFailure is the reason and the message of the condition Applied for an error.
func appliedFailure(err error) (reason, message string) {
	reason = workv1.AppliedManifestFailed
	var lasting *failure
	if errors.As(err, &lasting) {
		reason = lasting.reason
	}
	if reason == workv1.AppliedManifestSSAIgnoreFieldError {
		return reason, "Failed to process ignoreFields: " + err.Error()
	}
	return reason, "Failed to apply manifest: " + err.Error()
}
