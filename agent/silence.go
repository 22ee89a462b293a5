package agent

import (
	"context"
	"sync"
	"time"

	"k8s.io/utils/clock"
)

// silence notices when the hub was not heard for too long. It is a Runnable of a phase's manager.
type silence struct {
	clock clock.Clock
	limit time.Duration
	// over is called once with the instant since which nothing was heard; it must not block.
	over func(since time.Time)

	mu   sync.Mutex
	last time.Time
}

// newSilence returns a watch that counts from now.
func newSilence(c clock.Clock, limit time.Duration, over func(since time.Time)) *silence {
	return &silence{clock: c, limit: limit, over: over, last: c.Now()}
}

// heard notes that the hub was heard now.
func (s *silence) heard() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last = s.clock.Now()
}

// lasts returns how much longer the hub may be silent; not positive means too long.
func (s *silence) lasts() (left time.Duration, since time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.last.Add(s.limit).Sub(s.clock.Now()), s.last
}

// Start implements manager.Runnable.
func (s *silence) Start(ctx context.Context) error {
	for {
		left, since := s.lasts()
		if left <= 0 {
			s.over(since)
			return nil
		}
		timer := s.clock.NewTimer(left)
		select {
		case <-ctx.Done():
			timer.Stop()
			return nil
		case <-timer.C():
		}
	}
}
