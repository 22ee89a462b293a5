package suite

import (
	"errors"
	"fmt"
	"time"

	"github.com/stretchr/testify/assert"
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
	deadline := time.Now().Add(limit)
	ticker := time.NewTicker(Tick)
	defer ticker.Stop()
	for {
		err := holds()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Errorf("still not so after %s: %v", limit, err)
			t.FailNow()
		}
		<-ticker.C
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

// Checks makes a condition for Eventually of assertions, which are made with the given argument in place of the test.
func Checks(check func(c assert.TestingT)) func() error {
	return func() error {
		var c checks
		check(&c)
		return errors.Join(c...)
	}
}

// checks are the assertions that failed.
type checks []error

// Errorf implements assert.TestingT.
func (c *checks) Errorf(format string, args ...any) { *c = append(*c, fmt.Errorf(format, args...)) }

// Quiet waits until a state, such as a number of requests, has not changed for a while, and returns it.
func Quiet[S comparable](t T, period time.Duration, state func() S) S {
	t.Helper()
	last, since := state(), time.Now()
	Eventually(t, func() error {
		if now := state(); now != last {
			last, since = now, time.Now()
		}
		if calm := time.Since(since); calm < period {
			return fmt.Errorf("the last change was %s ago: %v", calm, last)
		}
		return nil
	})
	return last
}
