package suite

import (
	"context"
	"errors"
	"time"
)

const (
	// Timeout is how long anything may take before a test fails; on an idle machine it takes a second or two.
	Timeout = time.Minute
	// Tick is how often a condition is looked at.
	Tick = 20 * time.Millisecond
)

// Eventually waits until holds returns nil. The test fails with the last error otherwise, so the error says what is
// still missing and what is there instead. Conditions run in the goroutine of the test and may use require.
func Eventually(t T, holds func() error) {
	t.Helper()
	Within(t, Timeout, holds)
}

// Within is Eventually with a limit of its own.
func Within(t T, limit time.Duration, holds func() error) {
	t.Helper()
	if err := wait(t.Context(), limit, holds); err != nil {
		t.Errorf("still not so after %s: %v", limit, err)
		t.FailNow()
	}
}

// wait calls holds until it returns nil, or returns its last error when the limit is over or ctx ends.
func wait(ctx context.Context, limit time.Duration, holds func() error) error {
	deadline := time.Now().Add(limit)
	ticker := time.NewTicker(Tick)
	defer ticker.Stop()
	for {
		err := holds()
		if err == nil {
			return nil
		}
		if time.Now().After(deadline) {
			return err
		}
		select {
		case <-ctx.Done():
			return errors.Join(context.Cause(ctx), err)
		case <-ticker.C:
		}
	}
}

// Consistently requires that holds keeps returning nil for a while. It is for what must not happen, which no event
// announces: the shorter the better.
func Consistently(t T, period time.Duration, holds func() error) {
	t.Helper()
	deadline := time.Now().Add(period)
	ticker := time.NewTicker(Tick)
	defer ticker.Stop()
	for {
		if err := holds(); err != nil {
			t.Errorf("not so any more: %v", err)
			t.FailNow()
		}
		if time.Now().After(deadline) {
			return
		}
		<-ticker.C
	}
}

// True makes a condition for Eventually of a predicate; what says what should be, and state, if any, what is.
func True(what string, holds func() bool, state ...func() string) func() error {
	return func() error {
		if holds() {
			return nil
		}
		text := what
		for _, s := range state {
			text += "; " + s()
		}
		return errors.New(text)
	}
}
