package reconcile

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// Class is one of the five ways in which a pass of a reconciler can end.
type Class int

const (
	// ClassDone means that the facts match the intent.
	ClassDone Class = iota
	// ClassWaiting means that another party must act first; a wake time may be set.
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

// Done means that nothing is left to do until an event.
func Done() Outcome { return Outcome{} }

// DoneUntil means that nothing is left to do until an event or the time wake. A zero wake is Done.
func DoneUntil(wake time.Time) Outcome { return Outcome{wake: wake} }

// Waiting means that another party must act first; the pass is repeated at wake unless an event comes earlier. A zero
// wake waits for the event alone.
func Waiting(wake time.Time) Outcome { return Outcome{class: ClassWaiting, wake: wake} }

// Retry means that err may go away by itself; a nil err is Done. The caller wraps err with the action that failed.
func Retry(err error) Outcome {
	if err == nil {
		return Done()
	}
	return Outcome{class: ClassRetry, err: err}
}

// RetryBy is FromError for an urgent action, which must not be left to a growing back-off: err is logged and the pass
// repeated at wake.
func RetryBy(ctx context.Context, err error, wake time.Time) Outcome {
	if err == nil || IsLostRace(err) || wake.IsZero() {
		return FromError(err)
	}
	log.FromContext(ctx).Error(err, "failed, and is tried again", "at", wake)
	return Waiting(wake)
}

// Stalled means that err needs a person; it is logged once and not retried until an input changes.
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

// IsLostRace reports whether every part of err is a conflict with another writer.
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

// Behind returns a lost race: the API server has another version of an object than the cache, and the event of that
// starts the next pass.
func Behind(group, resource, name string) error {
	return apierrors.NewConflict(schema.GroupResource{Group: group, Resource: resource}, name,
		errors.New("the cache does not have its latest version yet"))
}

// Class returns the class of the outcome.
func (o Outcome) Class() Class { return o.class }

// Wake returns the time at which the pass is repeated; zero means that only an event repeats it.
func (o Outcome) Wake() time.Time { return o.wake }

// Err returns the error; nil for done and waiting.
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

// SettleIn is Settle for a pass whose wake time also counts when the pass failed. The queue repeats a failed pass after
// its back-off, which has no place for a time, so the request is added a second time. The earlier of both counts. A nil
// queue has only the back-off.
func (o Outcome) SettleIn(queue Queue, request ctrl.Request, now time.Time) (ctrl.Result, error) {
	if o.class == ClassRetry && !o.wake.IsZero() && queue != nil {
		queue.AddAfter(request, delay(o.wake, now))
	}
	return o.Settle(now)
}

// Settle converts the outcome to the result of Reconcile; now is the time of the pass. It drops the wake time of an
// outcome that is retried: the next attempt, which comes within lastBackoff, looks at everything and finds what is due.
// Where that is too late, there is SettleIn.
func (o Outcome) Settle(now time.Time) (ctrl.Result, error) {
	switch o.class {
	case ClassRetry:
		if isUndecodable(o.err) { // It was logged once, and an event comes when a user mends it.
			return ctrl.Result{RequeueAfter: delay(Earliest(o.wake, now.Add(lastBackoff)), now)}, nil
		}
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

// isUndecodable reports whether an error is about an object that cannot be decoded (package decode).
func isUndecodable(err error) bool {
	var unknown interface{ Undecodable() bool }
	return errors.As(err, &unknown) && unknown.Undecodable()
}

// stalledError is terminal, so that the queue does not retry. With a wake time, controller-runtime would ignore the
// time because of the error; then the error is dropped, which the status reports already.
func stalledError(o Outcome) error {
	if !o.wake.IsZero() {
		return nil
	}
	return reconcile.TerminalError(o.err)
}

// delay is the duration from now to wake; zero without a wake time, and never zero with one.
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
