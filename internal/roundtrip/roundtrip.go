// Package roundtrip has the two lines of net/http that every middleware of a transport needs, and two that transports
// need: Bound ends requests that a server, or what is before it, never answers, and redirects; Limit ends answers that
// are too long.
package roundtrip

import "net/http"

// Func is a function that is an http.RoundTripper.
type Func func(*http.Request) (*http.Response, error)

// RoundTrip implements http.RoundTripper.
func (f Func) RoundTrip(request *http.Request) (*http.Response, error) { return f(request) }

// Middleware wraps a transport, as rest.Config.Wrap wants it; it may be called for several transports.
type Middleware = func(http.RoundTripper) http.RoundTripper

// Chain returns a middleware that sends a request through outer, then inner; outer may be nil.
func Chain(inner, outer Middleware) Middleware {
	if outer == nil {
		return inner
	}
	return func(next http.RoundTripper) http.RoundTripper { return outer(inner(next)) }
}
