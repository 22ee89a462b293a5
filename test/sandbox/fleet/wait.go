package fleet

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
)

// pollInterval is how often Wait looks: often enough that what it measures is not its own.
const pollInterval = 50 * time.Millisecond

// ErrNotYet holds what a condition of Wait returns, wrapped with the reason, while it does not hold.
var ErrNotYet = errors.New("not yet")

// NotYet returns why a condition does not hold yet.
func NotYet(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{ErrNotYet}, args...)...)
}

// Wait calls holds until it returns nil or ctx ends; the error then says what was waited for and the last reason why
// it did not hold. Errors of reading are reasons like any other: a server that restarts is waited for too.
func Wait(ctx context.Context, what string, note func(string), holds func(ctx context.Context) error) error {
	ticker := time.NewTicker(pollInterval)
	defer ticker.Stop()
	var reason error
	for {
		err := holds(ctx)
		if err == nil {
			return nil
		}
		// What fails because ctx has just ended says nothing about what was waited for.
		if ctx.Err() == nil || reason == nil {
			reason = err
		}
		if note != nil {
			note(strings.ReplaceAll(reason.Error(), ErrNotYet.Error()+": ", ""))
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waiting for %s: %w: %w", what, context.Cause(ctx), reason)
		case <-ticker.C:
		}
	}
}

// Pause waits, and reports whether ctx did not end meanwhile.
func Pause(ctx context.Context, pause time.Duration) bool {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}
