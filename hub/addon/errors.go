package addon

import "errors"

// NotReadyError means that an Agent has no answer until another client acts.
type NotReadyError struct {
	// Message names what is missing, and who provides it.
	Message string
}

// Error implements error.
func (e *NotReadyError) Error() string { return e.Message }

// InvalidError means that an Agent has no answer until a person corrects something.
type InvalidError struct {
	// Message describes the error, its place, and the remedy.
	Message string
}

// Error implements error.
func (e *InvalidError) Error() string { return e.Message }

// IsNotReady reports whether err is, or wraps, a NotReadyError.
func IsNotReady(err error) bool {
	var target *NotReadyError
	return errors.As(err, &target)
}

// IsInvalid reports whether err is, or wraps, an InvalidError.
func IsInvalid(err error) bool {
	var target *InvalidError
	return errors.As(err, &target)
}
