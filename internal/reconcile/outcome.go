package reconcile

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// Class is one of the five ways in which a pass of a reconciler can end.
type Class int

const (
	// ClassDone means that the facts match the intent.
	ClassDone Class = iota
	// ClassWaiting means that somebody else must move first; a wake instant may be set.
	ClassWaiting
	// ClassLostRace means that another writer was faster; the pass is repeated quietly, soon at first, and the queue
	// backs off while it is lost again and again.
	ClassLostRace
	// ClassStalled means that only a person can help; nothing is retried until an input changes.
	ClassStalled
	// ClassRetry means that something failed that may succeed later; the queue backs off.
	ClassRetry
)

// Outcome is how a pass ended. The zero value is Done.
type Outcome struct {
	class Class
	wake  time.Time
	err   error
}

// Done says that nothing is left to do until something changes.
func Done() Outcome { return Outcome{} }

// DoneUntil says that nothing is left to do until something changes or the instant wake comes. A zero wake is Done.
func DoneUntil(wake time.Time) Outcome { return Outcome{wake: wake} }

// Waiting says that somebody else must move first; the pass is repeated at wake unless an event comes earlier. A zero
// wake waits for the event alone.
func Waiting(wake time.Time) Outcome { return Outcome{class: ClassWaiting, wake: wake} }

// Retry says that err may go away by itself; a nil err is Done. The caller wraps err with what was being done.
func Retry(err error) Outcome {
	if err == nil {
		return Done()
	}
	return Outcome{class: ClassRetry, err: err}
}

// RetryBy is FromError for what may not be left to a back-off that grows: err is logged and the pass repeated at wake.
func RetryBy(ctx context.Context, err error, wake time.Time) Outcome {
	if err == nil || IsLostRace(err) || wake.IsZero() {
		return FromError(err)
	}
	log.FromContext(ctx).Error(err, "failed, and is tried again", "at", wake)
	return Waiting(wake)
}

// Stalled says that err needs a person; it is logged once and not retried until an input changes.
func Stalled(err error) Outcome { return Outcome{class: ClassStalled, err: err} }

// FromError sorts an error of an API call: nil is Done, a conflict or an object that came or went meanwhile is a lost
// race, everything else is Retry.
func FromError(err error) Outcome {
	switch {
	case err == nil:
		return Done()
	case IsLostRace(err):
		return Outcome{class: ClassLostRace, err: err}
	default:
		return Retry(err)
	}
}

// IsLostRace reports whether every part of err says that another writer was faster.
func IsLostRace(err error) bool {
	var many interface{ Unwrap() []error }
	if errors.As(err, &many) {
		parts := many.Unwrap()
		for _, part := range parts {
			if !IsLostRace(part) {
				return false
			}
		}
		return len(parts) > 0
	}
	return apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err)
}

// Class returns the class of the outcome.
func (o Outcome) Class() Class { return o.class }

// Wake returns the instant at which the pass is to be repeated; zero means that only an event repeats it.
func (o Outcome) Wake() time.Time { return o.wake }

// Err returns what went wrong, nil for done and waiting.
func (o Outcome) Err() error { return o.err }

// And joins two outcomes: the worse class wins, the errors are joined and the earlier wake instant is kept.
func (o Outcome) And(p Outcome) Outcome {
	joined := Outcome{class: max(o.class, p.class), wake: Earliest(o.wake, p.wake)}
	switch {
	case o.err == nil:
		joined.err = p.err
	case p.err == nil:
		joined.err = o.err
	default:
		joined.err = errors.Join(o.err, p.err)
	}
	return joined
}

// Queue is as much of the queue of a controller as SettleIn needs.
type Queue interface {
	AddAfter(item ctrl.Request, after time.Duration)
}

// SettleIn is Settle for a pass whose wake instant counts also when the pass failed. A failed pass is repeated by the
// back-off of its queue, which takes no instant, so the instant goes into the queue besides. The earlier of both
// counts.
func (o Outcome) SettleIn(queue Queue, request ctrl.Request, now time.Time) (ctrl.Result, error) {
	if o.class == ClassRetry && !o.wake.IsZero() {
		queue.AddAfter(request, delay(o.wake, now))
	}
	return o.Settle(now)
}

// Settle maps the outcome to what controller-runtime wants, now being the instant of the pass. The instant of an
// outcome that is to be retried is dropped, see SettleIn.
func (o Outcome) Settle(now time.Time) (ctrl.Result, error) {
	switch o.class {
	case ClassRetry:
		return ctrl.Result{}, o.err
	case ClassStalled:
		return ctrl.Result{RequeueAfter: delay(o.wake, now)}, stalledError(o)
	case ClassLostRace:
		// An error would back off as well, but be logged; an instant would make the queue forget the races before.
		return ctrl.Result{Requeue: true}, nil
	case ClassDone, ClassWaiting:
		return ctrl.Result{RequeueAfter: delay(o.wake, now)}, nil
	}
	return ctrl.Result{}, fmt.Errorf("settling a pass: unknown outcome class %d", o.class)
}

// stalledError is terminal, so that the queue does not retry; with a wake instant set, controller-runtime would drop
// the instant along with the error, so then the error is dropped instead: it stands in the status already.
func stalledError(o Outcome) error {
	if !o.wake.IsZero() {
		return nil
	}
	return reconcile.TerminalError(o.err)
}

// delay is the time from now to wake; zero when there is no wake instant, and never zero when there is one.
func delay(wake, now time.Time) time.Duration {
	if wake.IsZero() {
		return 0
	}
	return max(wake.Sub(now), time.Millisecond)
}

// Earliest returns the earliest of the instants that are not zero, or zero.
func Earliest(instants ...time.Time) time.Time {
	var first time.Time
	for _, t := range instants {
		if !t.IsZero() && (first.IsZero() || t.Before(first)) {
			first = t
		}
	}
	return first
}
