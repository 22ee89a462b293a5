package reconcile

import (
	"context"
	"fmt"
	"time"

	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// Setup adds a reconciler to a manager.
type Setup interface {
	SetupWithManager(mgr ctrl.Manager) error
}

// SetupAll adds reconcilers to a manager that may be running. A running manager starts a controller as soon as it is
// added, which is before it has its sources: the controller would not wait for their caches, and the first pass would
// read from informers that do not exist yet. SetupAll therefore adds everything when all reconcilers are set up, and
// nothing if one fails.
func SetupAll(mgr ctrl.Manager, setups ...Setup) error {
	deferred := &deferredManager{Manager: mgr}
	for _, s := range setups {
		if err := s.SetupWithManager(deferred); err != nil {
			return err
		}
	}
	for _, runnable := range deferred.added {
		if err := mgr.Add(runnable); err != nil {
			return fmt.Errorf("adding %T to the manager: %w", runnable, err)
		}
	}
	return nil
}

// deferredManager collects runnables instead of starting them.
type deferredManager struct {
	ctrl.Manager
	added []manager.Runnable
}

// Add implements manager.Manager.
func (m *deferredManager) Add(runnable manager.Runnable) error {
	m.added = append(m.added, runnable)
	return nil
}

const (
	// firstBackoff is the first pause after a failed pass; it doubles.
	firstBackoff = 20 * time.Millisecond
	// lastBackoff is the longest that a failed pass waits, so that a repaired cause is noticed within it.
	lastBackoff = time.Minute
)

// Options returns the controller options that all our controllers share: the number of workers, and a back-off from
// 20 ms to one minute. The name check is off because one process may serve several clusters, as tests do.
func Options(workers int) controller.Options {
	unchecked := true
	return controller.Options{
		MaxConcurrentReconciles: workers,
		SkipNameValidation:      &unchecked,
		RateLimiter: workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](
			firstBackoff, lastBackoff),
	}
}

// CreatedOrDeleted passes the creation and the deletion of objects, and no change of them.
func CreatedOrDeleted() predicate.Funcs {
	return predicate.Funcs{
		UpdateFunc:  func(event.UpdateEvent) bool { return false },
		GenericFunc: func(event.GenericEvent) bool { return false },
	}
}

// DeletionStarted passes only the update that sets the deletion timestamp of an object.
func DeletionStarted() predicate.Funcs {
	return predicate.Funcs{
		CreateFunc:  func(event.CreateEvent) bool { return false },
		DeleteFunc:  func(event.DeleteEvent) bool { return false },
		GenericFunc: func(event.GenericEvent) bool { return false },
		UpdateFunc: func(e event.UpdateEvent) bool {
			return e.ObjectOld.GetDeletionTimestamp().IsZero() != e.ObjectNew.GetDeletionTimestamp().IsZero()
		},
	}
}

// Delayed is an event handler that enqueues the requests of mapped some time after each event, so that many events in
// that time become one pass. A change is mapped as it was and as it is.
func Delayed[O any](
	after time.Duration, mapped handler.TypedMapFunc[O, ctrl.Request],
) handler.TypedEventHandler[O, ctrl.Request] {
	type queue = workqueue.TypedRateLimitingInterface[ctrl.Request]
	add := func(ctx context.Context, q queue, object O) {
		for _, request := range mapped(ctx, object) {
			q.AddAfter(request, after)
		}
	}
	return handler.TypedFuncs[O, ctrl.Request]{
		CreateFunc: func(ctx context.Context, e event.TypedCreateEvent[O], q queue) { add(ctx, q, e.Object) },
		UpdateFunc: func(ctx context.Context, e event.TypedUpdateEvent[O], q queue) {
			add(ctx, q, e.ObjectOld)
			add(ctx, q, e.ObjectNew)
		},
		DeleteFunc:  func(ctx context.Context, e event.TypedDeleteEvent[O], q queue) { add(ctx, q, e.Object) },
		GenericFunc: func(ctx context.Context, e event.TypedGenericEvent[O], q queue) { add(ctx, q, e.Object) },
	}
}
