package agent

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/utils/clock"
)

// reachAfter is how long the hub must not answer before that is told. One connection that breaks is nothing: it is made
// anew, and watches come back by themselves.
const reachAfter = 5 * time.Second

// reach watches whether the hub answers on one connection. When it stops, that is logged once with its cause, again
// when the cause changes, and once when it is over; so who fails meanwhile because of it need not be logged.
type reach struct {
	clock  clock.WithDelayedExecution
	logger logr.Logger
	// hub is the address of the hub, host its host and port.
	hub, host string

	mu sync.Mutex
	// since is the first of an unbroken row of requests without an answer, cause why the last one had none.
	since time.Time
	cause string
	// told is the cause that was logged last; empty when the hub answers or that is not known to last.
	told string
}

func newReach(c clock.WithDelayedExecution, logger logr.Logger, hub string) *reach {
	r := &reach{clock: c, logger: logger, hub: hub}
	if address, err := url.Parse(hub); err == nil {
		r.host = address.Host
	}
	return r
}

// wrap puts the watch around a transport, as rest.Config.Wrap wants it.
func (r *reach) wrap(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(request *http.Request) (*http.Response, error) {
		answer, err := next.RoundTrip(request)
		switch {
		case err == nil && !absent(answer.StatusCode):
			r.answered()
		case err == nil:
			r.failed(fmt.Sprintf("something before it answers %d %s", answer.StatusCode, http.StatusText(answer.StatusCode)))
		case !errors.Is(request.Context().Err(), context.Canceled):
			r.failed(whyUnreachable(err))
		}
		return answer, err
	})
}

// absent reports whether a status is that of a proxy or a load balancer that does not reach the server.
func absent(status int) bool {
	return status == http.StatusBadGateway || status == http.StatusServiceUnavailable ||
		status == http.StatusGatewayTimeout
}

// failed notes a request without an answer.
func (r *reach) failed(cause string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.since.IsZero() {
		began := r.clock.Now()
		r.since = began
		r.clock.AfterFunc(reachAfter, func() { r.lasting(began) })
	}
	r.cause = cause
	if r.told != "" {
		r.tell()
	}
}

// lasting is called a while after the first request without an answer.
func (r *reach) lasting(began time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.since.Equal(began) && r.told == "" {
		r.tell()
	}
}

func (r *reach) tell() {
	if r.told == r.cause {
		return
	}
	r.told = r.cause
	r.logger.Info("the hub does not answer, going on with what needs no hub",
		"since", r.since.UTC().Format(time.RFC3339), "cause", r.cause)
}

// answered notes an answer.
func (r *reach) answered() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.told != "" {
		r.logger.Info("the hub answers again", "after", r.clock.Since(r.since).Round(time.Second).String())
	}
	r.since, r.cause, r.told = time.Time{}, "", ""
}

// silence says that the hub does not answer, since when and why; empty when it does or that does not last.
func (r *reach) silence() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.told == "" {
		return ""
	}
	return fmt.Sprintf("hub %s does not answer since %s: %s", r.hub, r.since.UTC().Format(time.RFC3339), r.cause)
}

// explains reports whether an error is a request to this hub that had no answer.
func (r *reach) explains(err error) bool {
	var request *url.Error
	if err == nil || !errors.As(err, &request) {
		return false
	}
	address, parsed := url.Parse(request.URL)
	return parsed == nil && address.Host == r.host
}

// whyUnreachable says in a few words why a request had no answer, in the same words for the same cause: without the
// address that the connection had at this end, and without the way in which it happened to break.
func whyUnreachable(err error) string {
	var name *net.DNSError
	var timeout net.Error
	switch {
	case errors.As(err, &name):
		return fmt.Sprintf("its name %s cannot be resolved: %s", name.Name, name.Err)
	case errors.Is(err, syscall.ECONNREFUSED):
		return "connection refused"
	case errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.ENETUNREACH):
		return "there is no route to it"
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &timeout) && timeout.Timeout():
		return "no answer in time"
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, net.ErrClosed),
		errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE), strings.Contains(err.Error(), "http2: "):
		return "connections break"
	}
	for {
		inner := errors.Unwrap(err)
		if inner == nil {
			return err.Error()
		}
		err = inner
	}
}
