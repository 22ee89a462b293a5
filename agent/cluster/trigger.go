package cluster

import (
	"context"
	"sync"
	"time"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

// trigger requests passes of the one object that this package reconciles. A request that comes before the controller
// has started is kept.
type trigger struct {
	mu      sync.Mutex
	pending bool
	queue   workqueue.TypedRateLimitingInterface[reconcile.Request]
	key     reconcile.Request
}

// Fire requests a pass; it never blocks.
func (t *trigger) Fire() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.queue == nil {
		t.pending = true
		return
	}
	t.queue.AddAfter(t.key, debounce)
}

// source connects the trigger with the queue of a controller.
func (t *trigger) source(key reconcile.Request) source.Source {
	return source.Func(func(_ context.Context, q workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.queue, t.key = q, key
		if t.pending {
			t.pending = false
			q.Add(key)
		}
		return nil
	})
}

// debounce is the time after which one pass handles all events of nodes, claims and namespaces, which come in bursts.
const debounce = 500 * time.Millisecond
