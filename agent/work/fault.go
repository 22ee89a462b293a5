package work

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/spokelet/spokelet/internal/reconcile"
)

// contain runs a function in a goroutine of ours, which nobody else recovers. A panic is a defect of the agent: it is
// logged with its stack, and becomes the failure of the one thing that the function is about, so that one object cannot
// take the agent down.
func contain(ctx context.Context, about string, run func()) (fault *failure) {
	defer func() {
		if cause := recover(); cause != nil {
			said := describePanic(cause)
			log.FromContext(ctx).Error(errors.New("panic: "+said), "a defect of the agent; please report it",
				"about", about, "stack", string(debug.Stack()))
			fault = &failure{reason: workv1.AppliedManifestFailed, message: fmt.Sprintf(
				"the agent failed, which is a defect of it: %s; its log has the details", cut(said, maxBecause))}
		}
	}()
	run()
	return nil
}

// describePanic is the value of a panic as text, or its type where even that panics.
func describePanic(cause any) (said string) {
	defer func() {
		if recover() != nil {
			said = fmt.Sprintf("a %T", cause)
		}
	}()
	return fmt.Sprint(cause)
}

// broken is the result of a task at which the agent failed. It is tried again when the manifest or the object changes,
// and at the end of a pause. What is known of the object stays known, and one of which nothing is known is not absent.
func (r *Reconciler) broken(h holder, t *task, fault *failure) result {
	known := t.prior
	if known.checked.IsZero() {
		return result{
			err: fault, lasting: true, presence: presenceUnknown, readErr: fault, wake: pauseAfter(t.now, t),
		}
	}
	known.wish, known.owner, known.reads = t.wish, t.owner.UID, t.reads
	known.failure, known.checked = fault, t.now
	r.ledger.note(h, t.id(), known)
	t.prior = known
	return recorded(t)
}

// pauseAfter is when a task that failed for good is tried again.
func pauseAfter(at time.Time, t *task) time.Time {
	return at.Add(reconcile.Spread(recheckPause, recheckSpread, t.id().String()))
}
