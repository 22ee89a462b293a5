package hubconn

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/spokelet/spokelet/internal/roundtrip"
)

// lines takes what is logged.
type lines struct {
	mu  sync.Mutex
	all []string
}

func (l *lines) logger(verbosity int) logr.Logger {
	return funcr.New(func(prefix, args string) {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.all = append(l.all, prefix+" "+args)
	}, funcr.Options{Verbosity: verbosity})
}

func (l *lines) take() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := l.all
	l.all = nil
	return all
}

func TestAHubThatStopsAnsweringIsToldOnce(t *testing.T) {
	now := clocktesting.NewFakeClock(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	var log lines
	r := NewReachability(now, log.logger(0), "https://hub:6443")
	r.failed("connections break")
	now.Step(outageAfter - time.Second)
	assert.Empty(t, r.Outage())
	r.responded()
	now.Step(time.Minute)
	assert.Empty(t, log.take(), "a connection that is made again is nothing")

	for range 100 {
		r.failed("connections break")
		now.Step(time.Second)
	}
	told := log.take()
	require.Len(t, told, 1)
	assert.Contains(t, told[0], `"since"="2026-01-02T03:05:09Z" "cause"="connections break"`)
	for range 10 {
		r.failed("no answer in time")
		now.Step(outageAfter - time.Second)
		r.failed("connections break")
		now.Step(outageAfter - time.Second)
	}
	assert.Empty(t, log.take(), "requests that fail in different ways are one outage")
	r.failed("connection refused")
	assert.Contains(t, r.Outage(), "connection refused", "readiness shows the last cause")
	now.Step(outageAfter)
	r.failed("connection refused")
	r.failed("connection refused")
	told = log.take()
	require.Len(t, told, 1, "another cause that lasts is logged")
	assert.Contains(t, told[0], "connection refused")
	assert.Contains(t, r.Outage(), "since 2026-01-02T03:05:09Z: connection refused")
	assert.Equal(t, "2026-01-02T03:05:09Z", r.Since().UTC().Format(time.RFC3339))
	r.responded()
	r.responded()
	told = log.take()
	require.Len(t, told, 1)
	assert.Contains(t, told[0], `the hub answers again" "after"="3m5s"`)
	assert.Empty(t, r.Outage())
}

func TestTheSameCauseIsToldInTheSameWords(t *testing.T) {
	read := func(port int, err error) error {
		return &url.Error{Op: "Get", URL: "https://hub/x", Err: &net.OpError{
			Op: "read", Net: "tcp", Source: &net.TCPAddr{Port: port}, Addr: &net.TCPAddr{Port: 6443}, Err: err,
		}}
	}
	tests := map[string]struct {
		err  error
		want string
	}{
		"a connection that is reset":  {read(1, os.NewSyscallError("read", syscall.ECONNRESET)), "connections break"},
		"from another port":           {read(2, os.NewSyscallError("read", syscall.ECONNRESET)), "connections break"},
		"a connection that ends":      {fmt.Errorf("x: %w", io.EOF), "connections break"},
		"in the middle":               {io.ErrUnexpectedEOF, "connections break"},
		"one of HTTP/2":               {errors.New("http2: client connection lost"), "connections break"},
		"nobody listens":              {read(1, syscall.ECONNREFUSED), "connection refused"},
		"no way":                      {read(1, syscall.ENETUNREACH), "there is no route to it"},
		"a deadline":                  {fmt.Errorf("x: %w", context.DeadlineExceeded), "no answer in time"},
		"a timeout":                   {read(1, os.ErrDeadlineExceeded), "no answer in time"},
		"no such name":                {&net.DNSError{Name: "hub", Err: "no such host"}, "its name hub cannot be resolved: no such host"},
		"a certificate of a stranger": {fmt.Errorf("tls: %w", x509.UnknownAuthorityError{}), "x509: certificate signed by unknown authority"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) { assert.Equal(t, tc.want, Cause(tc.err)) })
	}
}

func TestWhatCountsAsAnAnswerOfTheHub(t *testing.T) {
	status := http.StatusOK
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if status == 0 {
			<-r.Context().Done()
			return
		}
		w.WriteHeader(status)
	}))
	defer server.Close()
	now := clocktesting.NewFakeClock(time.Now())
	r := NewReachability(now, logr.Discard(), server.URL)
	client := &http.Client{Transport: r.Wrap(http.DefaultTransport)}
	get := func(ctx context.Context) {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, server.URL, nil)
		require.NoError(t, err)
		if answer, err := client.Do(request); err == nil {
			_ = answer.Body.Close()
		}
		now.Step(outageAfter)
	}
	for _, status = range []int{http.StatusOK, http.StatusForbidden, http.StatusInternalServerError, http.StatusTooManyRequests} {
		get(t.Context())
		assert.Empty(t, r.Outage(), status)
	}
	for _, status = range []int{http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout} {
		get(t.Context())
		assert.Contains(t, r.Outage(), http.StatusText(status))
	}
	status = http.StatusOK
	get(t.Context())
	status = 0
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	get(canceled)
	assert.Empty(t, r.Outage(), "who gives up a request learns nothing of the hub")
	late, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	get(late)
	assert.Contains(t, r.Outage(), "no answer in time")
}

func TestAManagedClusterElsewhereThatRejectsTheCredentialCannotBeUsed(t *testing.T) {
	now := clocktesting.NewFakeClock(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	code := http.StatusUnauthorized
	next := roundtrip.Func(func(*http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: code, Body: http.NoBody}, nil
	})
	var log lines
	r := NewSpokeReachability(now, log.logger(0), "https://c1:6443")
	hub := NewReachability(now, log.logger(0), "https://hub:6443")
	send := func(r *Reachability) {
		request := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)
		answer, err := r.Wrap(next).RoundTrip(request)
		require.NoError(t, err)
		require.NoError(t, answer.Body.Close())
	}
	send(r)
	send(hub)
	now.Step(outageAfter)
	assert.Equal(t, "managed cluster https://c1:6443 cannot be used since 2026-01-02T03:04:05Z: it answers 401 Unauthorized "+
		"to the credential in --spoke-kubeconfig", r.Outage())
	assert.Empty(t, hub.Outage(), "at the hub the agent joins again")
	require.Len(t, log.take(), 1)
	code = http.StatusOK
	send(r)
	assert.Empty(t, r.Outage())
	told := log.take()
	require.Len(t, told, 1)
	assert.Contains(t, told[0], "the managed cluster can be used again")
}
