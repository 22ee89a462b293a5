package cluster

import (
	"context"
	"net/http"
	"net/http/httptrace"
	"sync/atomic"
)

// Traffic watches the agent's own requests to the spoke for disturbances: requests that fail, answers of 500 and above,
// and connections that had to be made anew. One Traffic serves one API server.
type Traffic struct {
	disturbed atomic.Bool
	connected atomic.Bool
	bell      bell
}

// probing marks the context of requests that are probes themselves and so no disturbance.
type probing struct{}

// Wrap puts the watch around a transport, as rest.Config.Wrap wants it.
func (t *Traffic) Wrap(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(request *http.Request) (*http.Response, error) {
		ctx := request.Context()
		if ctx.Value(probing{}) != nil {
			return next.RoundTrip(request)
		}
		trace := &httptrace.ClientTrace{GotConn: func(info httptrace.GotConnInfo) {
			if !info.Reused && t.connected.Swap(true) {
				t.disturb()
			}
		}}
		answer, err := next.RoundTrip(request.WithContext(httptrace.WithClientTrace(ctx, trace)))
		switch {
		case err != nil && ctx.Err() == nil:
			t.disturb()
		case err == nil && answer.StatusCode >= http.StatusInternalServerError:
			t.disturb()
		}
		return answer, err
	})
}

// disturb remembers a disturbance and asks for a pass, once until take.
func (t *Traffic) disturb() {
	if !t.disturbed.Swap(true) {
		t.bell.Ring()
	}
}

// take reports whether there was a disturbance since the last call.
func (t *Traffic) take() bool { return t.disturbed.Swap(false) }

// asProbe marks requests under the returned context as probes.
func asProbe(ctx context.Context) context.Context { return context.WithValue(ctx, probing{}, true) }

// roundTripper is a function that is a transport.
type roundTripper func(*http.Request) (*http.Response, error)

// RoundTrip implements http.RoundTripper.
func (f roundTripper) RoundTrip(request *http.Request) (*http.Response, error) { return f(request) }
