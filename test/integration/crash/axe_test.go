package crash_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
)

// errDead is what an agent gets for everything it sends after its death.
var errDead = errors.New("the agent is dead")

// axe is a transport that lets an agent make a number of writes and kills it at the last of them.
type axe struct {
	// at is the number of the write at which it falls, from 1; zero never.
	at int
	// fell is called once, when it does.
	fell context.CancelFunc

	mu     sync.Mutex
	writes []string
	dead   bool
}

// wrap puts the axe around a transport; all transports of an agent share one.
func (a *axe) wrap(next http.RoundTripper) http.RoundTripper { return haft{axe: a, next: next} }

// made returns the writes so far.
func (a *axe) made() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return append([]string(nil), a.writes...)
}

// hasFallen reports whether the agent is dead.
func (a *axe) hasFallen() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.dead
}

// count notes a write and reports whether it is the one at which the agent dies. Reviews of access change nothing.
func (a *axe) count(r *http.Request) (last bool) {
	if r.Method == http.MethodGet || strings.Contains(r.URL.Path, "/apis/authorization.k8s.io/") {
		return false
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.writes = append(a.writes, fmt.Sprintf("%s %s", r.Method, r.URL.Path))
	return a.at > 0 && len(a.writes) == a.at
}

func (a *axe) fall() {
	a.mu.Lock()
	a.dead = true
	a.mu.Unlock()
	a.fell()
}

// haft is the axe around one transport.
type haft struct {
	axe  *axe
	next http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (h haft) RoundTrip(r *http.Request) (*http.Response, error) {
	if h.axe.hasFallen() {
		return nil, errDead
	}
	last := h.axe.count(r)
	answer, err := h.next.RoundTrip(r)
	if last {
		if err == nil {
			_ = answer.Body.Close()
		}
		h.axe.fall()
	}
	if h.axe.hasFallen() {
		return nil, errDead
	}
	return answer, err
}
