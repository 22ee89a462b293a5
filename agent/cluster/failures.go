package cluster

import (
	"context"
	"net/http"
	"net/http/httptrace"
	"sync/atomic"

	"github.com/spokelet/spokelet/internal/roundtrip"
)

// FailureDetector observes the agent's own requests to one API server. A request that fails, an answer of 401, of 500
// or above, and a second connection are signs that the API server may not be healthy, or of use to this agent.
type FailureDetector struct {
	suspected atomic.Bool
	connected atomic.Bool
	trigger   trigger
}

// probing marks the context of the requests of probes, which are not observed.
type probing struct{}

// Wrap returns a transport whose requests are observed; it fits rest.Config.Wrap.
func (t *FailureDetector) Wrap(next http.RoundTripper) http.RoundTripper {
	return roundtrip.Func(func(request *http.Request) (*http.Response, error) {
		ctx := request.Context()
		if ctx.Value(probing{}) != nil {
			return next.RoundTrip(request)
		}
		trace := &httptrace.ClientTrace{GotConn: func(info httptrace.GotConnInfo) {
			if !info.Reused && t.connected.Swap(true) {
				t.suspect()
			}
		}}
		answer, err := next.RoundTrip(request.WithContext(httptrace.WithClientTrace(ctx, trace)))
		switch {
		case err != nil && ctx.Err() == nil:
			t.suspect()
		case err == nil && (answer.StatusCode >= http.StatusInternalServerError ||
			answer.StatusCode == http.StatusUnauthorized):
			t.suspect()
		}
		return answer, err
	})
}

// suspect records a sign of failure and requests a pass, once until take.
func (t *FailureDetector) suspect() {
	if !t.suspected.Swap(true) {
		t.trigger.Fire()
	}
}

// take reports whether there was a sign of failure since the last call.
func (t *FailureDetector) take() bool { return t.suspected.Swap(false) }

// asProbe returns a context whose requests are not observed.
func asProbe(ctx context.Context) context.Context { return context.WithValue(ctx, probing{}, true) }
