package agent

import (
	"errors"
	"fmt"
	"io"
	"net/url"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"github.com/stretchr/testify/assert"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clocktesting "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/spokelet/spokelet/agent/health"
	"github.com/spokelet/spokelet/agent/hubconn"
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

func TestErrorsThatTheSilenceOfTheHubExplainsAreNotLogged(t *testing.T) {
	var log lines
	var s health.State
	ctx := withoutOutages(logr.NewContext(t.Context(), log.logger(0)), s.Explains)
	failed := func(host string) error {
		return fmt.Errorf("writing the status: %w", errors.Join(&url.Error{
			Op: "Put", URL: "https://" + host + "/apis/x", Err: syscall.ECONNREFUSED,
		}))
	}
	logger := ctrl.LoggerFrom(ctx).WithName("n").WithValues("a", "b")
	logger.Error(failed("hub:6443"), "failed")
	assert.Len(t, log.take(), 1, "there is no hub yet that explains it")
	s.Follow(hubconn.NewReachability(clocktesting.NewFakeClock(time.Now()), logr.Discard(), "https://hub:6443"))
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

	detailed := withoutOutages(logr.NewContext(t.Context(), log.logger(detail)), s.Explains)
	ctrl.LoggerFrom(detailed).Error(failed("hub:6443"), "failed")
	told := strings.Join(log.take(), "")
	assert.Contains(t, told, "writing the status", "it is there for who wants it")
}

func TestAWatchThatFailsIsLoggedOncePerCause(t *testing.T) {
	now := clocktesting.NewFakeClock(time.Now())
	w := newWatchErrors(logr.Discard(), now)
	assert.True(t, w.isNew("*v1.Secret", "forbidden"))
	assert.False(t, w.isNew("*v1.Secret", "forbidden"))
	assert.True(t, w.isNew("*v1.Node", "forbidden"), "of each kind")
	assert.True(t, w.isNew("*v1.Secret", "not found"), "another cause is news")
	now.Step(watchErrorAgain)
	assert.True(t, w.isNew("*v1.Secret", "not found"), "it is repeated now and then")
	assert.True(t, ended(io.EOF))
	assert.True(t, ended(apierrors.NewResourceExpired("old")))
	assert.False(t, ended(apierrors.NewUnauthorized("no")))
}
