// Package memory bounds the memory of a process: limit.go by the limit of its container, and the rest of the package
// returns free heap to the operating system when a burst of work is over. The runtime keeps it much
// longer by itself, and a process that rests most of the time would be measured by its bursts.
package memory

import (
	"net/http"
	"runtime/debug"
	"sync"
	"time"

	"k8s.io/utils/clock"

	"github.com/spokelet/spokelet/internal/roundtrip"
)

const (
	// burst is the number of requests that allocate enough to be worth a collection. At rest an agent sends one or two
	// in a minute, and a hub manager a dozen.
	burst = 100
	// quiet is how long there must be no request until the burst is over.
	quiet = 2 * time.Second
)

// Releaser frees memory when a burst of requests is over: the start, or works that came. Requests measure the work,
// because agents and hub managers do nothing without them. At rest nothing runs: the 100th request starts a timer,
// which runs until two seconds pass without another.
type Releaser struct {
	clock   clock.WithDelayedExecution
	release func()

	mu sync.Mutex
	// requests counts those since the last release, last is when the last one was sent.
	requests int
	last     time.Time
}

// NewReleaser returns a Releaser for which the start is a burst, however few its requests are.
func NewReleaser(c clock.WithDelayedExecution) *Releaser {
	return &Releaser{clock: c, release: debug.FreeOSMemory, requests: burst - 1}
}

// Wrap counts the requests of a transport.
func (r *Releaser) Wrap(next http.RoundTripper) http.RoundTripper {
	return roundtrip.Func(func(request *http.Request) (*http.Response, error) {
		r.count()
		return next.RoundTrip(request)
	})
}

// count adds one request.
func (r *Releaser) count() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.requests++
	r.last = r.clock.Now()
	if r.requests == burst {
		r.clock.AfterFunc(quiet, r.expire)
	}
}

// expire releases memory, or restarts the timer while there are requests.
func (r *Releaser) expire() {
	r.mu.Lock()
	left := quiet - r.clock.Since(r.last)
	if left > 0 {
		r.clock.AfterFunc(left, r.expire)
		r.mu.Unlock()
		return
	}
	r.requests = 0
	r.mu.Unlock()
	r.release()
}
