package agent

import (
	"fmt"
	"net/http"
	"sync"

	"github.com/go-logr/logr"
)

// report tells what a joining waits for, in the state and the log: nobody may write it into the ManagedCluster yet.
// What keeps the agent from asking at all, as a hub that is away or a refused bootstrap credential, comes first.
type report struct {
	state  *state
	logger logr.Logger
	// hub is the address of the hub.
	hub string

	mu            sync.Mutex
	text, trouble string
}

// progress takes what the joining waits for.
func (r *report) progress(text string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.text = text
	r.tell()
}

// wrap puts an ear on a transport to the hub, as rest.Config.Wrap wants it.
func (r *report) wrap(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(request *http.Request) (*http.Response, error) {
		answer, err := next.RoundTrip(request)
		switch {
		case err == nil:
			r.hear(troubleOf(r.hub, request, answer.StatusCode))
		case request.Context().Err() == nil:
			r.hear(fmt.Sprintf("hub %s does not answer: %s", r.hub, whyUnreachable(err)))
		}
		return answer, err
	})
}

func (r *report) hear(trouble string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.trouble = trouble
	r.tell()
}

func (r *report) tell() {
	text := r.text
	if r.trouble != "" {
		text = r.trouble
	}
	if r.state.set("joining: " + text) {
		r.logger.Info("joining", "status", text)
	}
}

// troubleOf says what an answer of the hub to the bootstrap credential keeps the agent from; empty for nothing. That it
// may not update a ManagedCluster is as it should be.
func troubleOf(hub string, request *http.Request, status int) string {
	switch {
	case status == http.StatusUnauthorized, status >= http.StatusInternalServerError:
		return fmt.Sprintf("hub %s answers %d %s to the bootstrap credential", hub, status, http.StatusText(status))
	case status == http.StatusForbidden && request.Method != http.MethodPut:
		return fmt.Sprintf("hub %s answers %d %s to %s %s with the bootstrap credential", hub, status,
			http.StatusText(status), request.Method, request.URL.Path)
	}
	return ""
}
