package reconcile

import (
	"context"
	"fmt"
	"sync"
)

// Gate lets one caller in at a time, as a mutex does, but one that waits gives up when its context ends. It is for what
// is held while a cache or an API server is asked: they may not answer for a long time, and a program has to end all
// the same. The zero value is open.
type Gate struct {
	once   sync.Once
	inside chan struct{}
}

// Enter waits until no other caller is inside, and returns how to leave. The error says what was waited for, and why no
// longer.
func (g *Gate) Enter(ctx context.Context, what string) (leave func(), err error) {
	g.once.Do(func() { g.inside = make(chan struct{}, 1) })
	select {
	case g.inside <- struct{}{}:
		return func() { <-g.inside }, nil
	case <-ctx.Done():
		return nil, fmt.Errorf("waiting to %s: %w", what, context.Cause(ctx))
	}
}
