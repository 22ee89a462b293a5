package agent

import (
	"fmt"
	"net/http"
	"sync"

	"github.com/go-logr/logr"

	"github.com/spokelet/spokelet/agent/health"
	"github.com/spokelet/spokelet/agent/hubconn"
	"github.com/spokelet/spokelet/internal/roundtrip"
)

// report publishes what joining waits for, in health and log: the agent may not write it into the ManagedCluster yet.
// Trouble that keeps the agent from asking at all counts more, such as an outage of the hub or a bootstrap credential
// that the hub rejects.
type report struct {
	state  *health.State
	logger logr.Logger
	// hub is the address of the hub.
	hub string
	// keeps reports whether the agent keeps works by their offline copies meanwhile: then it stays ready while the hub
	// does not respond, and only then, because a user who joins for the first time wants to see what is wrong.
	keeps bool

	mu            sync.Mutex
	text, trouble string
	// silent is set where the trouble is that the hub does not respond.
	silent bool
}

// progress sets what joining waits for.
func (r *report) progress(text string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.text = text
	r.publish()
}

// wrap observes the responses of the hub, as rest.Config.Wrap wants it.
func (r *report) wrap(next http.RoundTripper) http.RoundTripper {
	return roundtrip.Func(func(request *http.Request) (*http.Response, error) {
		response, err := next.RoundTrip(request)
		switch {
		case err == nil:
			r.observe(troubleOf(r.hub, request, response.StatusCode), false)
		case request.Context().Err() == nil:
			r.observe(fmt.Sprintf("hub %s does not answer: %s", r.hub, hubconn.Cause(err)), true)
		}
		return response, err
	})
}

func (r *report) observe(trouble string, silent bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.trouble, r.silent = trouble, silent
	r.publish()
}

func (r *report) publish() {
	text := r.text
	if r.trouble != "" {
		text = r.trouble
	}
	set := r.state.Set
	if r.silent && r.keeps {
		set = r.state.StandBy
	}
	if set("joining: " + text) {
		r.logger.Info("joining", "status", text)
	}
}

// troubleOf describes a response that keeps the agent from joining; empty for any other. A bootstrap credential should
// not be allowed to update a ManagedCluster.
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
