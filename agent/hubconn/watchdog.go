package hubconn

import (
	"context"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	"github.com/spokelet/spokelet/lease"
)

// Watchdog expires when the hub has not responded for too long. It is a Runnable of a phase's manager.
type Watchdog struct {
	clock   clock.Clock
	timeout time.Duration
	// expired is called once, with the time of the last response; it must not block.
	expired func(since time.Time)

	mu   sync.Mutex
	last time.Time
}

// NewWatchdog returns a Watchdog whose timeout starts now.
func NewWatchdog(c clock.Clock, timeout time.Duration, expired func(since time.Time)) *Watchdog {
	return &Watchdog{clock: c, timeout: timeout, expired: expired, last: c.Now()}
}

// Reset restarts the timeout: the hub has responded.
func (w *Watchdog) Reset() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.last = w.clock.Now()
}

// left returns how much longer the hub may be silent, and the time of its last response; not positive means too long.
func (w *Watchdog) left() (left time.Duration, since time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.last.Add(w.timeout).Sub(w.clock.Now()), w.last
}

// Start implements manager.Runnable.
func (w *Watchdog) Start(ctx context.Context) error {
	for {
		left, since := w.left()
		if left <= 0 {
			w.expired(since)
			return nil
		}
		timer := w.clock.NewTimer(left)
		select {
		case <-ctx.Done():
			timer.Stop()
			return nil
		case <-timer.C():
		}
	}
}

// Leases returns Leases that reset the watchdog at each heartbeat that the hub accepts.
func (w *Watchdog) Leases(leases lease.Leases) lease.Leases { return watchedLeases{leases, w} }

type watchedLeases struct {
	lease.Leases
	watchdog *Watchdog
}

// Update implements lease.Leases.
func (l watchedLeases) Update(
	ctx context.Context, heartbeat *coordinationv1.Lease, opts metav1.UpdateOptions,
) (*coordinationv1.Lease, error) {
	updated, err := l.Leases.Update(ctx, heartbeat, opts)
	if err == nil {
		l.watchdog.Reset()
	}
	return updated, err
}
