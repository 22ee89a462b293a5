package agent

import (
	"context"
	"errors"
	"io"
	"log"
	"sync"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
)

// detail is the verbosity of what is told elsewhere in other words already.
const detail = 1

// explained is a log sink that leaves out errors that have one cause, which is told elsewhere: that the hub does not
// answer. They are still there at a higher verbosity.
type explained struct {
	logr.LogSink
	state *state
}

// Error implements logr.LogSink.
func (e explained) Error(err error, message string, keysAndValues ...any) {
	if !e.state.explains(err) {
		e.LogSink.Error(err, message, keysAndValues...)
		return
	}
	e.Info(detail, message, append([]any{"error", err}, keysAndValues...)...)
}

// Info implements logr.LogSink. Who goes on after an error logs it as a value.
func (e explained) Info(level int, message string, keysAndValues ...any) {
	for _, value := range keysAndValues {
		if err, is := value.(error); is && e.state.explains(err) {
			level = max(level, detail)
		}
	}
	if e.Enabled(level) {
		e.LogSink.Info(level, message, keysAndValues...)
	}
}

// WithValues implements logr.LogSink.
func (e explained) WithValues(keysAndValues ...any) logr.LogSink {
	return explained{e.LogSink.WithValues(keysAndValues...), e.state}
}

// WithName implements logr.LogSink.
func (e explained) WithName(name string) logr.LogSink {
	return explained{e.LogSink.WithName(name), e.state}
}

// explains reports whether an error is a request to the hub that had no answer.
func (s *state) explains(err error) bool {
	s.mu.Lock()
	hub := s.hub
	s.mu.Unlock()
	return hub != nil && hub.explains(err)
}

// withExplained returns a context whose logger leaves out what the silence of the hub explains.
func withExplained(ctx context.Context, s *state) context.Context {
	logger := ctrl.LoggerFrom(ctx)
	if logger.GetSink() == nil {
		return ctx
	}
	return ctrl.LoggerInto(ctx, logger.WithSink(explained{logger.GetSink(), s}))
}

// watchErrors logs why watches fail, once for a kind and a cause; the libraries would do it at each try.
type watchErrors struct {
	logger logr.Logger
	clock  clock.PassiveClock

	mu   sync.Mutex
	last map[string]watchError
}

// watchError is what was logged last about the watch of a kind.
type watchError struct {
	cause string
	at    time.Time
}

func newWatchErrors(logger logr.Logger, c clock.PassiveClock) *watchErrors {
	return &watchErrors{logger: logger, clock: c, last: map[string]watchError{}}
}

// watchErrorAgain is how long a cause that lasts is not repeated.
const watchErrorAgain = 10 * time.Minute

// handle implements cache.WatchErrorHandlerWithContext.
func (w *watchErrors) handle(ctx context.Context, watch *toolscache.Reflector, err error) {
	if ctx.Err() != nil || ended(err) {
		return
	}
	if w.news(watch.TypeDescription(), whyUnreachable(err)) {
		w.logger.Error(err, "watching fails, trying again", "kind", watch.TypeDescription())
	}
}

// ended reports whether a watch ended as watches do, so that nothing has to be done but to watch anew.
func ended(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || apierrors.IsResourceExpired(err) ||
		apierrors.IsGone(err)
}

// news reports whether there is something to log about the watch of a kind.
func (w *watchErrors) news(kind, cause string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := w.clock.Now()
	if before, ok := w.last[kind]; ok && before.cause == cause && now.Sub(before.at) < watchErrorAgain {
		return false
	}
	w.last[kind] = watchError{cause: cause, at: now}
	return true
}

// quietLog returns the log of an HTTP server: what its clients do wrong is a detail.
func quietLog(ctx context.Context) *log.Logger {
	return log.New(lineWriter{ctrl.LoggerFrom(ctx)}, "", 0)
}

// lineWriter logs each line that is written.
type lineWriter struct{ logger logr.Logger }

// Write implements io.Writer.
func (w lineWriter) Write(line []byte) (int, error) {
	w.logger.V(detail).Info("serving health", "problem", string(line))
	return len(line), nil
}
