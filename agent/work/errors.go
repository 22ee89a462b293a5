package work

import (
	"errors"
	"fmt"
	"net/http"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
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
// admission, or because the object is invalid. The same request is refused again until somebody changes something.
func isRefusal(err error) bool {
	var answer apierrors.APIStatus
	if !errors.As(err, &answer) {
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
