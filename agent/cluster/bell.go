package cluster

import (
	"context"
	"sync"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

// bell asks for a pass of the one object that this package reconciles. Ringing never blocks, and ringing before anybody
// listens is remembered.
type bell struct {
	mu    sync.Mutex
	rung  bool
	queue workqueue.TypedRateLimitingInterface[reconcile.Request]
	key   reconcile.Request
}

// Ring asks for a pass.
func (b *bell) Ring() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.queue == nil {
		b.rung = true
		return
	}
	b.queue.AddAfter(b.key, debounce)
}

// source connects the bell with the queue of a controller.
func (b *bell) source(key reconcile.Request) source.Source {
	return source.Func(func(_ context.Context, q workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.queue, b.key = q, key
		if b.rung {
			b.rung = false
			q.Add(key)
		}
		return nil
	})
}
