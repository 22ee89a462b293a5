package hubcrash_test

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
)

// errDead holds what a hub manager gets for everything that it sends after its death.
var errDead = errors.New("the hub manager is dead")

// blow is how a hub manager dies at a write.
type blow int

const (
	// answerLost means that the write takes effect and its answer is lost.
	answerLost blow = iota
	// writeLost means that the write does not arrive.
	writeLost
)

// String implements fmt.Stringer.
func (b blow) String() string { return [...]string{"after", "before"}[b] }

// axe is a transport that kills a hub manager at one of its writes.
type axe struct {
	mu sync.Mutex
	// at is the number of the write at which it falls, from 1; zero never.
	at     int
	how    blow
	writes []string
	dead   bool
	// fell is closed when it falls.
	fell chan struct{}
}

func newAxe() *axe { return &axe{fell: make(chan struct{})} }

// raise counts writes from here on. A hub manager that died at the very end of the former phase stays dead, and is
// revived in this one.
func (a *axe) raise(at int, how blow) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.dead {
		a.at, a.how, a.writes = at, how, nil
	}
}

// made returns the writes since raise.
func (a *axe) made() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.writes)
}

// last returns the last write.
func (a *axe) last() string {
	made := a.made()
	return made[len(made)-1]
}

func (a *axe) isDead() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.dead
}

// count notes a write. It reports whether the request is sent, and whether the hub manager is dead afterwards.
func (a *axe) count(r *http.Request) (sent, last bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.dead {
		return false, false
	}
	if !isWrite(r) {
		return true, false
	}
	a.writes = append(a.writes, fmt.Sprintf("%s %s", r.Method, r.URL.Path))
	last = a.at > 0 && len(a.writes) == a.at
	// From here on nothing else is sent, also not by those who write at the same time.
	a.dead = last
	return !last || a.how == answerLost, last
}

// isWrite reports whether a request changes anything that is compared. Reviews, trials and tokens change nothing;
// leases and Events are no state.
func isWrite(r *http.Request) bool {
	path := r.URL.Path
	return r.Method != http.MethodGet && !r.URL.Query().Has("dryRun") &&
		!strings.HasPrefix(path, "/apis/auth") && !strings.HasSuffix(path, "/token") &&
		!strings.Contains(path, "/leases") && !strings.Contains(path, "/events")
}

// haft is the axe around one transport.
type haft struct {
	axe  *axe
	next http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (h haft) RoundTrip(r *http.Request) (*http.Response, error) {
	sent, last := h.axe.count(r)
	if last {
		defer close(h.axe.fell)
	}
	if !sent {
		return nil, errDead
	}
	answer, err := h.next.RoundTrip(r)
	if !h.axe.isDead() {
		return answer, err
	}
	if err == nil {
		_ = answer.Body.Close()
	}
	return nil, errDead
}
