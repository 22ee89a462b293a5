package addon

import "errors"

// NotReadyError says that an Agent has no answer before somebody else moves.
type NotReadyError struct {
	// Message says what is waited for, and for whom.
	Message string
}

// Error implements error.
func (e *NotReadyError) Error() string { return e.Message }

// InvalidError says that an Agent has no answer before a person corrects something.
type InvalidError struct {
	// Message says what is wrong, where, and what to do.
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
