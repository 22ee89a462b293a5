package agent

import (
	"net/http"
	"sync"
	"time"

	"k8s.io/utils/clock"
)

// answers watches what the hub answers on one connection. A hub that answers nothing but 401 Unauthorized for a while
// does not know the certificate any more, good as it looks: its CA was replaced, or it is another hub at the same
// address. One 401 among other answers is nothing, and 403 Forbidden is none: who is forbidden something is known.
type answers struct {
	clock clock.PassiveClock
	// time learns from the answers what time it is at the hub; nil where nobody wants to know.
	time *hubTime
	// patience is how long there may be nothing but 401.
	patience time.Duration
	// refused is called at each 401 after that, taken at the first other answer after such a call, and heard at each
	// answer that shows that the hub works. They must not block; nil calls nobody.
	refused func(since time.Time)
	taken   func()
	heard   func()

	mu    sync.Mutex
	since time.Time
	told  bool
}

// wrap puts the watch around a transport, as rest.Config.Wrap wants it.
func (a *answers) wrap(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(request *http.Request) (*http.Response, error) {
		answer, err := next.RoundTrip(request)
		if err == nil {
			a.note(answer.StatusCode)
		}
		return answer, err
	})
}

// note takes the status of one answer.
func (a *answers) note(status int) {
	if status < http.StatusInternalServerError && a.heard != nil {
		a.heard()
	}
	if call := a.judge(status, a.clock.Now()); call != nil {
		call()
	}
}

// judge remembers an answer and returns whom to call.
func (a *answers) judge(status int, now time.Time) func() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if status >= http.StatusInternalServerError || status == http.StatusTooManyRequests {
		return nil // it may not have looked at who asks
	}
	if status != http.StatusUnauthorized {
		told := a.told
		a.since, a.told = time.Time{}, false
		if told {
			return a.taken
		}
		return nil
	}
	if a.since.IsZero() {
		a.since = now
	}
	if now.Sub(a.since) < a.patience || a.refused == nil {
		return nil
	}
	a.told = true
	since := a.since
	return func() { a.refused(since) }
}

// reset forgets what was answered to a former certificate.
func (a *answers) reset() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.since = time.Time{}
}

// roundTripper is a function that is a transport.
type roundTripper func(*http.Request) (*http.Response, error)

// RoundTrip implements http.RoundTripper.
func (f roundTripper) RoundTrip(request *http.Request) (*http.Response, error) { return f(request) }
