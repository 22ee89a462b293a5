package watch

import (
	"context"
	"slices"
	"sync"
)

// Trigger holds at most one pending signal, so that Fire never blocks and many signals cause one reaction.
type Trigger chan struct{}

// NewTrigger returns a Trigger without a signal.
func NewTrigger() Trigger { return make(Trigger, 1) }

// Fire signals, unless a signal is pending.
func (t Trigger) Fire() {
	select {
	case t <- struct{}{}:
	default:
	}
}

// Set runs one watch for each wanted key.
type Set[K comparable] struct {
	// Wanted returns the keys to watch. It is called at the start and after each signal of Changed; running reports
	// whether a key is watched already.
	Wanted func(ctx context.Context, running func(K) bool) []K
	// Start prepares the watch of a key and returns the function that runs it until its context ends.
	Start func(key K) (run func(ctx context.Context))
	// Changed signals that the wanted keys may have changed.
	Changed Trigger
}

// Run starts and stops watches until ctx ends, and returns when all of them have ended.
func (s *Set[K]) Run(ctx context.Context) {
	var watches sync.WaitGroup
	defer watches.Wait()
	stops := map[K]context.CancelFunc{}
	defer func() {
		for _, stop := range stops {
			stop()
		}
	}()
	for {
		wanted := s.Wanted(ctx, func(key K) bool { return stops[key] != nil })
		for key, stop := range stops {
			if !slices.Contains(wanted, key) {
				stop()
				delete(stops, key)
			}
		}
		for _, key := range wanted {
			if stops[key] != nil {
				continue
			}
			within, stop := context.WithCancel(ctx) //nolint:gosec // called above or at the end
			stops[key] = stop
			run := s.Start(key)
			watches.Go(func() { run(within) })
		}
		select {
		case <-ctx.Done():
			return
		case <-s.Changed:
		}
	}
}
