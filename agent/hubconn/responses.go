package hubconn

import (
	"net/http"
	"sync"
	"time"

	"k8s.io/utils/clock"

	"github.com/spokelet/spokelet/internal/roundtrip"
)

// Responses detects that the hub rejects the certificate of a connection. A hub that responds with nothing but 401
// Unauthorized for a while does not know the certificate any more, although it looks valid: the CA of the hub was
// replaced, or another hub has the address. One 401 among other responses means nothing, and 403 Forbidden proves that
// the hub knows the user.
type Responses struct {
	// Clock is required.
	Clock clock.PassiveClock
	// UnauthorizedAfter is how long there may be nothing but 401.
	UnauthorizedAfter time.Duration
	// Rejected is called at each 401 after that, Accepted at the first other response after such a call, and Answered at
	// each response that shows that the hub works. They must not block; nil calls nothing.
	Rejected func(since time.Time)
	Accepted func()
	Answered func()

	mu sync.Mutex
	// since is the first 401 of an unbroken run of them, reported is set after a call of Rejected.
	since    time.Time
	reported bool
}

// Wrap adds the detection to a transport, as rest.Config.Wrap wants it.
func (r *Responses) Wrap(next http.RoundTripper) http.RoundTripper {
	return roundtrip.Func(func(request *http.Request) (*http.Response, error) {
		response, err := next.RoundTrip(request)
		if err == nil {
			r.observe(response.StatusCode)
		}
		return response, err
	})
}

// observe takes the status of one response.
func (r *Responses) observe(status int) {
	if status < http.StatusInternalServerError && r.Answered != nil {
		r.Answered()
	}
	if call := r.record(status, r.Clock.Now()); call != nil {
		call()
	}
}

// record remembers a response and returns the function to call, if any.
func (r *Responses) record(status int, now time.Time) func() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if status >= http.StatusInternalServerError || status == http.StatusTooManyRequests {
		return nil // the hub may not have authenticated the request
	}
	if status != http.StatusUnauthorized {
		reported := r.reported
		r.since, r.reported = time.Time{}, false
		if reported {
			return r.Accepted
		}
		return nil
	}
	if r.since.IsZero() {
		r.since = now
	}
	if now.Sub(r.since) < r.UnauthorizedAfter || r.Rejected == nil {
		return nil
	}
	r.reported = true
	since := r.since
	return func() { r.Rejected(since) }
}

// reset forgets the responses to a former certificate.
func (r *Responses) reset() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.since = time.Time{}
}
