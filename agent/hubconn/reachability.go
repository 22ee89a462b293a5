package hubconn

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

	"github.com/spokelet/spokelet/internal/roundtrip"
)

// outageAfter is how long a cluster must not respond before that counts as an outage. A connection that breaks is none:
// the clients reconnect, and watches resume.
const outageAfter = 5 * time.Second

// Reachability detects outages of a cluster on one connection: of the hub, or of the managed cluster in hosted mode. It
// logs an outage once with its cause, again when another cause lasts, and once when it is over, so that the errors that
// follow from it need no log.
type Reachability struct {
	clock  clock.WithDelayedExecution
	logger logr.Logger
	words  words
	// server is the URL of the cluster, host its host and port.
	server, host string

	mu sync.Mutex
	// since is the first of an unbroken run of requests without a response, cause why the last one had none, causeSince
	// the first of an unbroken run with that cause.
	since, causeSince time.Time
	cause             string
	// logged is the cause that was logged last; empty outside an outage.
	logged string
}

// words are how an outage is described.
type words struct {
	// name is the name of the cluster, outage what it does not do during an outage.
	name, outage string
	// began and ended are the entries of the log.
	began, ended string
	// unauthorized is the cause of an answer of 401; empty where that is not an outage.
	unauthorized string
}

// NewReachability returns the Reachability of the hub with that URL.
func NewReachability(c clock.WithDelayedExecution, logger logr.Logger, hub string) *Reachability {
	return newReachability(c, logger, hub, words{
		name: "hub", outage: "does not answer", ended: "the hub answers again",
		began: "the hub does not answer, going on with what needs no hub",
	})
}

// NewSpokeReachability returns the Reachability of the managed cluster with that URL, for an agent that runs on another
// cluster. There, an answer of 401 counts as an outage, too: nobody but a person replaces the credential.
func NewSpokeReachability(c clock.WithDelayedExecution, logger logr.Logger, server string) *Reachability {
	return newReachability(c, logger, server, words{
		name: "managed cluster", outage: "cannot be used", ended: "the managed cluster can be used again",
		began:        "the managed cluster cannot be used, going on with what needs the hub alone",
		unauthorized: "it answers 401 Unauthorized to the credential in --spoke-kubeconfig",
	})
}

func newReachability(c clock.WithDelayedExecution, logger logr.Logger, server string, w words) *Reachability {
	r := &Reachability{clock: c, logger: logger, server: server, words: w}
	if address, err := url.Parse(server); err == nil {
		r.host = address.Host
	}
	return r
}

// Wrap adds the detection to a transport, as rest.Config.Wrap wants it.
func (r *Reachability) Wrap(next http.RoundTripper) http.RoundTripper {
	return roundtrip.Func(func(request *http.Request) (*http.Response, error) {
		response, err := next.RoundTrip(request)
		switch {
		case err == nil && response.StatusCode == http.StatusUnauthorized && r.words.unauthorized != "":
			r.failed(r.words.unauthorized)
		case err == nil && !fromProxy(response.StatusCode):
			r.responded()
		case err == nil:
			r.failed(fmt.Sprintf("something before it answers %d %s", response.StatusCode, http.StatusText(response.StatusCode)))
		case !errors.Is(request.Context().Err(), context.Canceled):
			r.failed(Cause(err))
		}
		return response, err
	})
}

// fromProxy reports whether a status is that of a proxy or a load balancer that cannot reach the server.
func fromProxy(status int) bool {
	return status == http.StatusBadGateway || status == http.StatusServiceUnavailable ||
		status == http.StatusGatewayTimeout
}

// failed notes a request without a response.
func (r *Reachability) failed(cause string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.clock.Now()
	if r.since.IsZero() {
		r.since = now
		r.clock.AfterFunc(outageAfter, func() { r.confirm(now) })
	}
	if r.cause != cause {
		r.cause, r.causeSince = cause, now
	}
	// Requests in flight fail in different ways in one outage, so a change of the cause counts only when it lasts.
	if r.logged != "" && now.Sub(r.causeSince) >= outageAfter {
		r.log()
	}
}

// confirm logs the outage that began at an instant, unless the cluster has responded since.
func (r *Reachability) confirm(began time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.since.Equal(began) && r.logged == "" {
		r.log()
	}
}

func (r *Reachability) log() {
	if r.logged == r.cause {
		return
	}
	r.logged = r.cause
	r.logger.Info(r.words.began,
		"since", r.since.UTC().Format(time.RFC3339), "cause", r.cause)
}

// responded notes a response.
func (r *Reachability) responded() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.logged != "" {
		r.logger.Info(r.words.ended, "after", r.clock.Since(r.since).Round(time.Second).String())
	}
	r.since, r.causeSince, r.cause, r.logged = time.Time{}, time.Time{}, "", ""
}

// Outage describes the outage with its begin and its cause; empty outside an outage.
func (r *Reachability) Outage() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.logged == "" {
		return ""
	}
	return fmt.Sprintf("%s %s %s since %s: %s", r.words.name, r.server, r.words.outage,
		r.since.UTC().Format(time.RFC3339), r.cause)
}

// Since returns when the outage began; zero outside an outage.
func (r *Reachability) Since() time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.logged == "" {
		return time.Time{}
	}
	return r.since
}

// Explains reports whether an error is that of a request to this cluster without a response.
func (r *Reachability) Explains(err error) bool {
	var request *url.Error
	if err == nil || !errors.As(err, &request) {
		return false
	}
	address, parsed := url.Parse(request.URL)
	return parsed == nil && address.Host == r.host
}

// Cause describes briefly why a request had no response. The words for a cause are always the same: they leave out the
// local address of the connection, and how exactly it broke.
func Cause(err error) string {
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
