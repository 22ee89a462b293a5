package fleet

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/watch"
)

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
