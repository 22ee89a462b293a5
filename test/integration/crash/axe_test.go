package crash_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// errDead holds what an agent gets for everything it sends after its death.
var errDead = errors.New("the agent is dead")

// write is a write of an agent that the API server carried out: the nth of its kind, from 1.
type write struct {
	// kind is the method and the path, without what differs from agent to agent.
	kind string
	nth  int
}

func (w write) String() string { return fmt.Sprintf("%s (%d)", w.kind, w.nth) }

// lasts reports whether every life of an agent has this write. How often statuses are written, leases renewed and Events
// told depends on how busy the machine is.
func (w write) lasts() bool {
	return !strings.HasSuffix(w.kind, "/status") && !strings.Contains(w.kind, "/leases") && !strings.Contains(w.kind, "/events")
}

// axe is a transport that counts the writes of an agent and kills it at one of them.
type axe struct {
	// cluster is the name of the cluster.
	cluster string
	// at is the write at which it falls; the zero write never comes.
	at write
	// fell is called once, when it does.
	fell context.CancelFunc

	mu     sync.Mutex
	writes []write
	counts map[string]int
	dead   bool
}

// wrap puts the axe around a transport; all transports of an agent share one.
func (a *axe) wrap(next http.RoundTripper) http.RoundTripper { return haft{axe: a, next: next} }

// made returns the writes so far.
func (a *axe) made() []write {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.writes)
}

// hasFallen reports whether the agent is dead.
func (a *axe) hasFallen() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.dead
}

// digests are the parts of names that are computed from the name of the cluster.
var digests = regexp.MustCompile(`-[0-9a-f]{10}\b`)

// count notes a write that the API server carried out, and reports whether it is the one at which the agent dies.
// Reviews of access change nothing, and a write that lost a race is made again. An agent with a new certificate closes
// its connections: a write without an answer may have been carried out, and a request object is then found and not made
// again. An agent that is to die does so at such a write, too; an undisturbed one does not count it.
func (a *axe) count(r *http.Request, answer *http.Response) (last bool) {
	if r.Method == http.MethodGet || strings.Contains(r.URL.Path, "/apis/authorization.k8s.io/") ||
		(answer == nil && a.at == write{}) || (answer != nil && answer.StatusCode >= http.StatusMultipleChoices) {
		return false
	}
	kind := r.Method + " " + digests.ReplaceAllString(strings.ReplaceAll(r.URL.Path, a.cluster, "CLUSTER"), "-DIGEST")
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.counts == nil {
		a.counts = map[string]int{}
	}
	a.counts[kind]++
	w := write{kind, a.counts[kind]}
	a.writes = append(a.writes, w)
	return w == a.at
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
	answer, err := h.next.RoundTrip(r)
	if h.axe.count(r, answer) {
		h.axe.fall()
	}
	if !h.axe.hasFallen() {
		return answer, err
	}
	if err == nil {
		_ = answer.Body.Close()
	}
	return nil, errDead
}
