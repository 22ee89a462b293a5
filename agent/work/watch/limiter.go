package watch

import "time"

const (
	// burst is how often an object is repaired, or read because it changed, without a pause.
	burst = 10
	// refill is how long it takes to be allowed once more after that. So two writers that fight for good cost one write
	// per refill, an object that is written all the time one read, and a single change is repaired immediately.
	refill = 15 * time.Second
)

// Limiter is a token bucket; the zero value is full.
type Limiter struct {
	spent float64
	at    time.Time
}

// refilled returns the limiter at now.
func (l Limiter) refilled(now time.Time) Limiter {
	if !l.at.IsZero() {
		l.spent = max(0, l.spent-float64(now.Sub(l.at))/float64(refill))
	}
	l.at = now
	return l
}

// Spend takes one token, or returns false and the instant at which there is one again.
func (l Limiter) Spend(now time.Time) (Limiter, time.Time, bool) {
	l = l.refilled(now)
	if l.spent > burst-1 {
		missing := l.spent - (burst - 1)
		return l, now.Add(time.Duration(missing * float64(refill))), false
	}
	l.spent++
	return l, time.Time{}, true
}
