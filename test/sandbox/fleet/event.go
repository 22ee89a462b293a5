package fleet

import (
	"context"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// watchAgain is how long Follow waits after a watch that was refused.
const watchAgain = 250 * time.Millisecond

// Follow calls handle with each object of a list as it is, and whenever it changes, until ctx ends.
func Follow[O client.Object](
	ctx context.Context, c client.WithWatch, list client.ObjectList, handle func(watch.EventType, O),
	options ...client.ListOption,
) {
	for ctx.Err() == nil {
		events, err := c.Watch(ctx, list, options...)
		if err != nil {
			Pause(ctx, watchAgain)
			continue
		}
		for event := range events.ResultChan() {
			if object, ok := event.Object.(O); ok {
				handle(event.Type, object)
			}
		}
		events.Stop()
	}
}

// AwaitEvent waits until done reports true for an event of a watch. A watch that ends or fails before is an error.
func AwaitEvent(ctx context.Context, events watch.Interface, done func(watch.Event) bool) error {
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case event, open := <-events.ResultChan():
			if !open {
				return NotYet("the watch ended")
			}
			if event.Type == watch.Error {
				return apierrors.FromObject(event.Object)
			}
			if done(event) {
				return nil
			}
		}
	}
}
