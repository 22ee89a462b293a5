package roundtrip

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"sync/atomic"
	"time"
)

// Silence is how long a request may make no progress. An API server ends its own work on a request after a minute, by
// default, and keeps a watch alive for as long as the watch asked for.
const Silence = 90 * time.Second

// maxRetryAfter is the longest pause before the next attempt, in seconds, that a server may ask for: clients take any,
// up to ten times for one request, and a proxy that names a day would stop a watch for as long.
const maxRetryAfter = 60

// errSilent is the error of a request that made no progress for too long.
var errSilent = errors.New("the server stopped in the middle of a request, so it was given up")

// errRedirect is the error of an answer that names another address. API servers send none; one from which a client got
// the contents of another service could read there what only the client may reach.
var errRedirect = errors.New("the server answered with a redirect to another address, which is not followed")

// Bound returns a middleware that ends each request of which nothing is sent or received for so long, whatever is
// between the client and the server: a proxy may answer for a connection of which one request hangs, so that no probe
// of the connection notices. A watch may be silent for as long as it asked for; one that asked for no time, and a
// request for another protocol, only has to begin to answer. No redirect is followed, and a server may ask for a pause
// of a minute at most.
func Bound(silence time.Duration) Middleware {
	return func(next http.RoundTripper) http.RoundTripper {
		return Func(func(request *http.Request) (*http.Response, error) { return bound(next, request, silence) })
	}
}

func bound(next http.RoundTripper, request *http.Request, silence time.Duration) (*http.Response, error) {
	ctx, cancel := context.WithCancelCause(request.Context())
	w := &watchdog{ended: func() error { return context.Cause(ctx) }, cancel: cancel, silence: silence}
	w.timer = time.AfterFunc(silence, func() { cancel(errSilent) })
	sent := request.WithContext(ctx)
	if request.Body != nil && request.Body != http.NoBody {
		sent.Body = &watched{ReadCloser: request.Body, watchdog: w}
		if original := request.GetBody; original != nil {
			sent.GetBody = func() (io.ReadCloser, error) {
				body, err := original()
				if err != nil {
					return nil, err
				}
				return &watched{ReadCloser: body, watchdog: w}, nil
			}
		}
	}
	response, err := next.RoundTrip(sent)
	if err != nil {
		w.end()
		return nil, w.cause(err)
	}
	if location := response.Header.Get("Location"); location != "" && response.StatusCode/100 == 3 {
		_ = response.Body.Close()
		w.end()
		return nil, errRedirect
	}
	if after, err := strconv.Atoi(response.Header.Get("Retry-After")); err == nil && after > maxRetryAfter {
		response.Header.Set("Retry-After", strconv.Itoa(maxRetryAfter))
	}
	if response.StatusCode == http.StatusSwitchingProtocols {
		w.timer.Stop() // its body is the connection, which the caller owns
		return response, nil
	}
	switch after, isWatch := lasts(request.URL.Query()); {
	case isWatch && after > 0:
		w.wait(after)
	case isWatch:
		w.silence = 0
	}
	w.progress()
	response.Body = &watched{ReadCloser: response.Body, watchdog: w, last: true}
	return response, nil
}

// lasts reports whether a request watches, and how long it may be silent: forever is zero.
func lasts(query url.Values) (time.Duration, bool) {
	if isWatch, err := strconv.ParseBool(query.Get("watch")); err != nil || !isWatch {
		follows, err := strconv.ParseBool(query.Get("follow"))
		return 0, err == nil && follows
	}
	seconds, err := strconv.ParseInt(query.Get("timeoutSeconds"), 10, 32)
	if err != nil || seconds <= 0 {
		return 0, true
	}
	return time.Duration(seconds) * time.Second, true
}

// watchdog ends a request that makes no progress.
type watchdog struct {
	// ended returns why the request ended, nil when it did not.
	ended  func() error
	cancel context.CancelCauseFunc
	timer  *time.Timer
	// over fires when a watch should have ended; until then it waits, and may be silent.
	over  *time.Timer
	waits atomic.Bool
	// silence is zero when nothing is to be ended any more.
	silence time.Duration
}

// progress takes up that something was sent or received.
func (w *watchdog) progress() {
	if w.silence == 0 {
		w.timer.Stop()
		return
	}
	if !w.waits.Load() {
		w.timer.Reset(w.silence)
	}
}

// wait lets a watch be silent for as long as it asked for.
func (w *watchdog) wait(most time.Duration) {
	w.timer.Stop()
	w.waits.Store(true)
	w.over = time.AfterFunc(most, func() {
		w.waits.Store(false)
		w.timer.Reset(w.silence)
	})
}

// end releases what the request holds.
func (w *watchdog) end() {
	w.timer.Stop()
	if w.over != nil {
		w.over.Stop()
	}
	w.cancel(nil)
}

// cause is the error of a request, or why the watchdog ended it.
func (w *watchdog) cause(err error) error {
	if cause := w.ended(); errors.Is(cause, errSilent) {
		return cause
	}
	return err
}

// watched is a body whose bytes are progress.
type watched struct {
	io.ReadCloser

	watchdog *watchdog
	// last is set for the body of the answer, with which the request ends.
	last bool
}

// Read implements io.Reader.
func (b *watched) Read(into []byte) (int, error) {
	n, err := b.ReadCloser.Read(into)
	switch {
	case err != nil && b.last:
		if !errors.Is(err, io.EOF) {
			err = b.watchdog.cause(err)
		}
		b.watchdog.end()
	case n > 0:
		b.watchdog.progress()
	}
	return n, err
}

// Close implements io.Closer.
func (b *watched) Close() error {
	if b.last {
		b.watchdog.end()
	}
	return b.ReadCloser.Close()
}
