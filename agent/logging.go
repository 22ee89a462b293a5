package agent

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/spokelet/spokelet/agent/hubconn"
	"github.com/spokelet/spokelet/internal/kept"
)

// detail is the verbosity of an entry whose cause has an entry of its own.
const detail = 1

// outageSink is a log sink that leaves out the errors that follow from an outage of the hub, which is logged once by
// itself. They remain at a higher verbosity.
type outageSink struct {
	logr.LogSink
	explains func(error) bool
}

// Error implements logr.LogSink.
func (s outageSink) Error(err error, message string, keysAndValues ...any) {
	if !s.explains(err) {
		s.LogSink.Error(err, message, keysAndValues...)
		return
	}
	s.Info(detail, message, append([]any{"error", err}, keysAndValues...)...)
}

// Info implements logr.LogSink. Code that goes on after an error logs it as a value.
func (s outageSink) Info(level int, message string, keysAndValues ...any) {
	for _, value := range keysAndValues {
		if err, is := value.(error); is && s.explains(err) {
			level = max(level, detail)
		}
	}
	if s.Enabled(level) {
		s.LogSink.Info(level, message, keysAndValues...)
	}
}

// WithValues implements logr.LogSink.
func (s outageSink) WithValues(keysAndValues ...any) logr.LogSink {
	return outageSink{s.LogSink.WithValues(keysAndValues...), s.explains}
}

// WithName implements logr.LogSink.
func (s outageSink) WithName(name string) logr.LogSink {
	return outageSink{s.LogSink.WithName(name), s.explains}
}

// withoutOutages returns a context whose logger leaves out the errors that follow from an outage of the hub.
func withoutOutages(ctx context.Context, explains func(error) bool) context.Context {
	logger := ctrl.LoggerFrom(ctx)
	if logger.GetSink() == nil {
		return ctx
	}
	return ctrl.LoggerInto(ctx, logger.WithSink(outageSink{logger.GetSink(), explains}))
}

// watchErrors logs why watches fail, once per kind and cause; the libraries would log each attempt.
type watchErrors struct {
	logger logr.Logger
	clock  clock.PassiveClock

	last kept.Map[string, watchError]
}

// watchError is the last entry about the watch of a kind.
type watchError struct {
	cause string
	at    time.Time
}

func newWatchErrors(logger logr.Logger, c clock.PassiveClock) *watchErrors {
	return &watchErrors{logger: logger, clock: c}
}

// watchErrorAgain is the pause between two entries for a cause that lasts.
const watchErrorAgain = 10 * time.Minute

// handle implements cache.WatchErrorHandlerWithContext.
func (w *watchErrors) handle(ctx context.Context, watch *toolscache.Reflector, err error) {
	if ctx.Err() != nil || ended(err) {
		return
	}
	if w.isNew(watch.TypeDescription(), hubconn.Cause(err)) {
		w.logger.Error(err, "watching fails, trying again", "kind", watch.TypeDescription())
	}
}

// ended reports whether a watch ended as all watches do in the end, and is only to be restarted.
func ended(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || apierrors.IsResourceExpired(err) ||
		apierrors.IsGone(err)
}

// isNew reports whether the cause has to be logged for a kind.
func (w *watchErrors) isNew(kind, cause string) bool {
	now, isNew := w.clock.Now(), false
	w.last.Change(kind, func(before watchError) (watchError, bool) {
		if isNew = before.cause != cause || now.Sub(before.at) >= watchErrorAgain; isNew {
			before = watchError{cause: cause, at: now}
		}
		return before, true
	})
	return isNew
}
