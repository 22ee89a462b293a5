package reconcile

import (
	"context"
	"time"

	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
)

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
