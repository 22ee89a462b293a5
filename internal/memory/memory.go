// Package memory bounds the memory of a process: limit.go by the limit of its container, and the rest of the package
// returns free heap to the operating system when a burst of work is over. The runtime keeps it much
// longer by itself, and a process that rests most of the time would be measured by its bursts.
package memory

import (
	"net/http"
	"runtime/debug"
	"runtime/metrics"
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
	// later is the pause after a release in which more work may have followed that sends no requests.
	later = 30 * time.Second
	// little is how much a process at rest may allocate in that pause, in bytes.
	little = 32 << 20
)

// Releaser frees memory when a burst of requests is over: the start, or works that came. Requests measure the work,
// because agents and hub managers do nothing for long without them. At rest nothing runs: the 100th request starts a
// timer, which runs until two seconds pass without another.
//
// A hub manager that starts with 60,000 add-ons lists them with a few requests and then looks at each for a minute,
// with none. So a release is repeated after half a minute if much was allocated meanwhile: 32 MiB, and a quarter of the
// heap.
type Releaser struct {
	clock   clock.WithDelayedExecution
	release func()
	measure func() heap

	mu sync.Mutex
	// requests counts those since the last release, last is when the last one was sent.
	requests int
	last     time.Time
	// released is the heap after the last release, and checking reports whether a look at what followed is due.
	released heap
	checking bool
}

// heap is the state of the heap of the runtime in bytes.
type heap struct {
	// allocated is all that was ever allocated, live what the last collection left.
	allocated, live uint64
}

// measure reads the state of the heap.
func measure() heap {
	samples := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}, {Name: "/gc/heap/live:bytes"}}
	metrics.Read(samples)
	return heap{allocated: samples[0].Value.Uint64(), live: samples[1].Value.Uint64()}
}

// NewReleaser returns a Releaser for which the start is a burst, however few its requests are.
func NewReleaser(c clock.WithDelayedExecution) *Releaser {
	return &Releaser{clock: c, release: debug.FreeOSMemory, measure: measure, requests: burst - 1}
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
	r.free()
}

// free releases memory, and looks later whether that has to be repeated.
func (r *Releaser) free() {
	r.release()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.released = r.measure()
	if !r.checking {
		r.checking = true
		r.clock.AfterFunc(later, r.check)
	}
}

// check releases memory again if much was allocated since the last time. During a burst of requests, its end does.
func (r *Releaser) check() {
	now := r.measure()
	r.mu.Lock()
	r.checking = false
	much := now.allocated-r.released.allocated > max(little, r.released.live/4) && r.requests < burst
	r.mu.Unlock()
	if much {
		r.free()
	}
}
