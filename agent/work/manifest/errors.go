package manifest

import (
	"errors"
	"net/http"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/spokelet/spokelet/internal/reconcile"
)

// PermanentError is an error that lasts: the manifest is not applied until it or its object changes, so an early retry
// is of no use.
type PermanentError struct {
	// Reason is the reason of the condition Applied of the manifest.
	Reason string
	// Message is the cause, without the words that introduce it in the condition.
	Message string
}

// Error is the message.
func (f *PermanentError) Error() string { return f.Message }

// Failed returns the failure with the usual reason.
func Failed(message string) *PermanentError {
	return &PermanentError{Reason: workv1.AppliedManifestFailed, Message: message}
}

// AsFailure returns the permanent failure that an error stands for; nil when the same request may succeed soon.
func AsFailure(err error) *PermanentError {
	var known *PermanentError
	var defect *reconcile.PanicError
	switch {
	case errors.As(err, &known):
		return known
	case IsRefusal(err), errors.As(err, &defect):
		return Failed(err.Error())
	}
	return nil
}

// IsRefusal reports whether the API server understood a request and refused it: for lack of a permission, by a quota or
// by admission, or because the object is invalid. It refuses the same request again until a user changes something. A
// namespace that is being deleted goes by itself, so it is not a refusal.
func IsRefusal(err error) bool {
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
