package cluster

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

// pollInterval is how often a condition is looked at: rarely enough that looking costs two cores little.
const pollInterval = 300 * time.Millisecond

// ErrFinal ends the waiting when a condition wraps it: what is waited for cannot come any more.
var ErrFinal = errors.New("this will not change")

// Until waits until holds returns nil. When ctx ends before, the error has what was waited for, and the last reason why
// it did not hold. An error of reading is a reason like any other: API servers come back.
func Until(ctx context.Context, what string, holds func(ctx context.Context) error) error {
	var reason error
	err := wait.PollUntilContextCancel(ctx, pollInterval, true, func(ctx context.Context) (bool, error) {
		err := holds(ctx)
		// What fails because ctx has just ended is not a reason.
		if err == nil || ctx.Err() == nil || reason == nil {
			reason = err
		}
		if errors.Is(err, ErrFinal) {
			return false, err
		}
		return err == nil, nil
	})
	switch {
	case err == nil:
		return nil
	case errors.Is(reason, ErrFinal):
		return fmt.Errorf("waiting for %s: %w", what, reason)
	}
	return fmt.Errorf("waiting for %s: %w: %w", what, context.Cause(ctx), reason)
}

// During calls holds again and again for a while. It returns its first error, and how often it was called.
func During(ctx context.Context, period time.Duration, holds func(ctx context.Context) error) (looks int, err error) {
	limited, cancel := context.WithTimeout(ctx, period)
	defer cancel()
	err = wait.PollUntilContextCancel(limited, pollInterval, true, func(ctx context.Context) (bool, error) {
		err := holds(ctx)
		if ctx.Err() != nil {
			return false, ctx.Err() // What fails because the while is over did not fail.
		}
		looks++
		return false, err
	})
	if limited.Err() != nil && ctx.Err() == nil {
		err = nil
	}
	return looks, err
}
