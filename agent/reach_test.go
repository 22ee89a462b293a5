package agent

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
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clocktesting "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
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
	r := newReach(now, log.logger(0), "https://hub:6443")
	r.failed("connections break")
	now.Step(reachAfter - time.Second)
	assert.Empty(t, r.silence())
	r.answered()
	now.Step(time.Minute)
	assert.Empty(t, log.take(), "a connection that is made anew is nothing")

	for range 100 {
		r.failed("connections break")
		now.Step(time.Second)
	}
	told := log.take()
	require.Len(t, told, 1)
	assert.Contains(t, told[0], `"since"="2026-01-02T03:05:09Z" "cause"="connections break"`)
	r.failed("connection refused")
	r.failed("connection refused")
	told = log.take()
	require.Len(t, told, 1, "another cause is told")
	assert.Contains(t, told[0], "connection refused")
	assert.Contains(t, r.silence(), "since 2026-01-02T03:05:09Z: connection refused")
	r.answered()
	r.answered()
	told = log.take()
	require.Len(t, told, 1)
	assert.Contains(t, told[0], `the hub answers again" "after"="1m40s"`)
	assert.Empty(t, r.silence())
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
		t.Run(name, func(t *testing.T) { assert.Equal(t, tc.want, whyUnreachable(tc.err)) })
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
	r := newReach(now, logr.Discard(), server.URL)
	client := &http.Client{Transport: r.wrap(http.DefaultTransport)}
	get := func(ctx context.Context) {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, server.URL, nil)
		require.NoError(t, err)
		if answer, err := client.Do(request); err == nil {
			_ = answer.Body.Close()
		}
		now.Step(reachAfter)
	}
	for _, status = range []int{http.StatusOK, http.StatusForbidden, http.StatusInternalServerError, http.StatusTooManyRequests} {
		get(t.Context())
		assert.Empty(t, r.silence(), status)
	}
	for _, status = range []int{http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout} {
		get(t.Context())
		assert.Contains(t, r.silence(), http.StatusText(status))
	}
	status = http.StatusOK
	get(t.Context())
	status = 0
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	get(canceled)
	assert.Empty(t, r.silence(), "who gives up a request learns nothing of the hub")
	late, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	get(late)
	assert.Contains(t, r.silence(), "no answer in time")
}

func TestErrorsThatTheSilenceOfTheHubExplainsAreNotLogged(t *testing.T) {
	var log lines
	var s state
	ctx := withExplained(logr.NewContext(t.Context(), log.logger(0)), &s)
	failed := func(host string) error {
		return fmt.Errorf("writing the status: %w", errors.Join(&url.Error{
			Op: "Put", URL: "https://" + host + "/apis/x", Err: syscall.ECONNREFUSED,
		}))
	}
	logger := ctrl.LoggerFrom(ctx).WithName("n").WithValues("a", "b")
	logger.Error(failed("hub:6443"), "failed")
	assert.Len(t, log.take(), 1, "there is no hub yet that explains it")
	s.follow(newReach(clocktesting.NewFakeClock(time.Now()), logr.Discard(), "https://hub:6443"))
	logger.Error(failed("hub:6443"), "failed")
	assert.Empty(t, log.take())
	logger.Error(failed("spoke:6443"), "failed")
	logger.Error(apierrors.NewForbidden(schema.GroupResource{}, "x", nil), "failed")
	logger.Error(nil, "failed")
	logger.Info("as ever", "text", "hub:6443")
	logger.Info("failed", "error", failed("spoke:6443"))
	assert.Len(t, log.take(), 5, "everything else is")
	logger.Info("failed", "error", failed("hub:6443"))
	assert.Empty(t, log.take(), "an error may be one of the values")

	detailed := withExplained(logr.NewContext(t.Context(), log.logger(detail)), &s)
	ctrl.LoggerFrom(detailed).Error(failed("hub:6443"), "failed")
	told := strings.Join(log.take(), "")
	assert.Contains(t, told, "writing the status", "it is there for who wants it")
}

func TestAWatchThatFailsIsLoggedOncePerCause(t *testing.T) {
	now := clocktesting.NewFakeClock(time.Now())
	w := newWatchErrors(logr.Discard(), now)
	assert.True(t, w.news("*v1.Secret", "forbidden"))
	assert.False(t, w.news("*v1.Secret", "forbidden"))
	assert.True(t, w.news("*v1.Node", "forbidden"), "of each kind")
	assert.True(t, w.news("*v1.Secret", "not found"), "another cause is news")
	now.Step(watchErrorAgain)
	assert.True(t, w.news("*v1.Secret", "not found"), "it is repeated now and then")
	assert.True(t, ended(io.EOF))
	assert.True(t, ended(apierrors.NewResourceExpired("old")))
	assert.False(t, ended(apierrors.NewUnauthorized("no")))
}
