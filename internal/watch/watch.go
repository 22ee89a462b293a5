package watch

import (
	"context"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/spokelet/spokelet/internal/reconcile"
)

// Handler receives the objects of one Watch, in order and from one goroutine at a time. Its methods must not block.
type Handler[T runtime.Object] interface {
	// Replace receives all objects that exist, with the resource version of the list.
	Replace(ctx context.Context, objects []T, version string)
	// Update receives an object that was created or changed.
	Update(ctx context.Context, object T)
	// Delete receives the last state of an object that was deleted.
	Delete(ctx context.Context, object T)
}

// Watch lists and watches the objects of a Source and hands them to a Handler.
type Watch[T runtime.Object] struct {
	// Name is the name of the controller and Description the objects, both for logs.
	Name, Description string
	// Source lists and watches the objects.
	Source Source
	// Handler receives the objects, without their managed fields.
	Handler Handler[T]
	// Trim drops from an object in place what Handler does not read; it saves memory during the first list. Optional.
	Trim func(T)
	// Relist is the time after which all objects are listed again; zero means never.
	Relist time.Duration
	// Refused reports whether an error does not go away by itself; pauses then grow to five minutes. Nil means never.
	Refused func(error) bool
	// Advice is logged once when the API server starts to refuse the watch; empty means no message.
	Advice string
	// Ended is called whenever the watch ended before its context, with nil when it ended normally. Optional.
	Ended func(err error)
	// Silent is called once with the last error when the watch has failed for half a minute without a list, so that the
	// caller can fall back to polling; again only after a list. An API server that nobody reaches is no failure of the
	// watch. Optional.
	Silent func(err error)
	// Resumed is called when a watch goes on without a list after Silent: an API server that was overloaded let it begin
	// where it was. Optional.
	Resumed func()
	// Clock times pauses and Relist; nil means the real clock.
	Clock clock.WithDelayedExecution
}

// Refused reports whether an API server does not allow or does not serve a list or watch, which time alone does not
// change.
func Refused(err error) bool {
	return apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) || apierrors.IsNotFound(err) ||
		apierrors.IsMethodNotSupported(err)
}

// state holds what Run keeps from one watch to the next.
type state struct {
	reflector *cache.Reflector
	course    course
	quiet     silence
	pauses    backoff
	// advised is set when Advice has been given since the watch last worked.
	advised bool
	// expired is set when the API server does not have the version of the watch any more.
	expired atomic.Bool
}

// Run lists and watches until ctx ends.
func (w *Watch[T]) Run(ctx context.Context) {
	timer := w.Clock
	if timer == nil {
		timer = clock.RealClock{}
	}
	s := &state{course: course{began: timer.Now()}}
	store := w.store(ctx)
	store.listed = func() { s.quiet.listed = !w.Source.EventsOnly } // an empty list shows nothing
	source := w.source(s, timer)
	s.reflector = w.reflector(source, &s.course, timer, store)
	for ctx.Err() == nil {
		began, version := timer.Now(), s.reflector.LastSyncResourceVersion()
		relist, err := w.listAndWatch(ctx, timer, s.reflector, w.relistIn(&s.course, began))
		if ctx.Err() != nil {
			return
		}
		if w.Ended != nil {
			w.Ended(err)
		}
		end := ending{
			err: err, refused: err != nil && w.Refused != nil && w.Refused(err),
			lasted: timer.Since(began), progressed: s.reflector.LastSyncResourceVersion() != version,
		}
		s.advised = w.report(ctx, end, s.advised)
		again := w.Source.EventsOnly && s.follows(&end, relist, timer.Now())
		if s.quiet.ended(end.err, timer.Now()) || s.course.shut && s.quiet.told {
			w.fallSilent(ctx, end.err, s.advised)
		}
		if again {
			s.reflector = w.reflector(source, &s.course, timer, store) // the former would go on where it was
			s.pauses = backoff{}
		}
		wait(ctx, timer, s.pauses.next(end))
	}
}

// follows takes the end of a watch of events, and reports whether it is to begin again.
func (s *state) follows(end *ending, relist bool, now time.Time) (again bool) {
	s.course.expired = s.expired.Swap(false)
	again = s.course.ended(end, relist, s.reflector.LastSyncResourceVersion(), now)
	s.quiet.listed = s.quiet.listed || s.course.works
	if s.course.lost {
		s.quiet.lapse(now)
	}
	return again
}

// source is the Source with what the reflector does not report.
func (w *Watch[T]) source(s *state, timer clock.PassiveClock) Source {
	source := w.Source
	source.throttled = func(ctx context.Context, err error) {
		if source.EventsOnly && s.course.throttled(s.reflector.LastSyncResourceVersion(), timer.Now()) {
			s.quiet.listed = true
		}
		if s.quiet.refusedNow(err, timer.Now()) {
			w.fallSilent(ctx, err, s.advised)
		}
	}
	source.goesOn = func() {
		if s.quiet.goesOn() && w.Resumed != nil {
			w.Resumed()
		}
	}
	source.expired = func() { s.expired.Store(true) }
	return source
}

// relistIn is the time until all objects are listed again; zero means never.
func (w *Watch[T]) relistIn(c *course, now time.Time) time.Duration {
	if w.Relist <= 0 || !w.Source.EventsOnly {
		return w.Relist
	}
	return max(time.Millisecond, w.Relist-now.Sub(c.began))
}

// reflector returns a reflector that has listed nothing.
func (w *Watch[T]) reflector(
	source Source, c *course, timer clock.WithDelayedExecution, store *adapter,
) *cache.Reflector {
	var reflector *cache.Reflector
	source.Accepted = func() {
		c.accepted, c.at, c.version = true, timer.Now(), reflector.LastSyncResourceVersion()
		if w.Source.Accepted != nil {
			w.Source.Accepted()
		}
	}
	reflector = cache.NewReflectorWithOptions(source.listWatch(timer), nil, store,
		cache.ReflectorOptions{Name: w.Name, TypeDescription: w.Description, Clock: timer})
	reflector.WatchListPageSize = source.PageSize
	store.goesOn = func(version string) bool {
		return source.EventsOnly && version != "" && version == reflector.LastSyncResourceVersion()
	}
	return reflector
}

// report logs the end of the watch, and Advice unless it was given before. It returns whether Advice has been given
// since the watch last worked.
func (w *Watch[T]) report(ctx context.Context, end ending, advised bool) bool {
	logger := log.FromContext(ctx).WithValues("watch", w.Description)
	switch {
	case end.err == nil:
		return false
	case end.refused && w.Advice != "":
		if !advised || end.progressed {
			logger.Info(w.Advice, "error", end.err.Error())
		}
		return true
	}
	logger.V(1).Info("the watch failed", "error", end.err.Error())
	return advised && !end.progressed
}

// fallSilent reports that the watch has failed for so long that changes are not seen.
func (w *Watch[T]) fallSilent(ctx context.Context, err error, advised bool) {
	if !advised {
		log.FromContext(ctx).Info("a watch keeps failing, so changes are not seen until it works again",
			"watch", w.Description, "error", err.Error())
	}
	if w.Silent != nil {
		w.Silent(err)
	}
}

// listAndWatch lists and watches once, until it is to list again at most. It reports whether that time is over.
func (w *Watch[T]) listAndWatch(
	ctx context.Context, timer clock.WithDelayedExecution, reflector *cache.Reflector, relistIn time.Duration,
) (relist bool, err error) {
	within, cancel := context.WithCancel(ctx)
	defer cancel()
	if relistIn > 0 {
		defer timer.AfterFunc(relistIn, cancel).Stop()
	}
	panicked := reconcile.Contain(ctx, w.Description, func() { err = reflector.ListAndWatchWithContext(within) })
	if panicked != nil {
		return false, panicked
	}
	if within.Err() != nil {
		return true, nil // the error of a request that we cancelled is not one of the API server
	}
	return false, err
}

// wait waits for a time or the end of ctx.
func wait(ctx context.Context, timer clock.Clock, d time.Duration) {
	t := timer.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C():
	}
}
