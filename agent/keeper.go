package agent

import (
	"context"
	"sync"

	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/spokelet/spokelet/agent/hubconn"
	"github.com/spokelet/spokelet/agent/join"
)

// keeper keeps the connection of a serving phase on the latest credential, and ends the phase when that expires. It is
// a Runnable of the phase's manager.
type keeper struct {
	hub   *hubconn.Connection
	end   context.CancelCauseFunc
	clock clock.Clock
	// hubClock is the clock of the hub, by which certificates expire.
	hubClock clock.PassiveClock

	mu      sync.Mutex
	current join.Credential
	// changed holds one signal when current was replaced.
	changed chan struct{}
}

func (a *agent) newKeeper(hub *hubconn.Connection, first join.Credential, end context.CancelCauseFunc) *keeper {
	return &keeper{
		hub: hub, end: end, clock: a.clock, hubClock: a.hubClock, current: first, changed: make(chan struct{}, 1),
	}
}

// offer takes the credential that is valid now. The join reconciler calls it at each pass. It does not block.
func (k *keeper) offer(c join.Credential) {
	k.mu.Lock()
	defer k.mu.Unlock()
	switch {
	case k.current.Same(c):
		return
	case !k.current.Server.Equal(c.Server) || k.current.Identity != c.Identity:
		k.end(phaseOverError("the hub credential leads elsewhere"))
		return
	}
	if err := k.hub.Rotate(c.Pair); err != nil {
		k.end(phaseOverError("the new certificate cannot be used: " + err.Error()))
		return
	}
	k.current = c
	select {
	case k.changed <- struct{}{}:
	default:
	}
}

// latest returns the credential in use.
func (k *keeper) latest() join.Credential {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.current
}

// Start implements manager.Runnable.
func (k *keeper) Start(ctx context.Context) error {
	for {
		k.mu.Lock()
		expires := k.current.NotAfter
		k.mu.Unlock()
		timer := k.clock.NewTimer(expires.Sub(k.hubClock.Now()))
		select {
		case <-ctx.Done():
			timer.Stop()
			return nil
		case <-timer.C():
			k.end(phaseOverError("the certificate for the hub expired at " + expires.UTC().String()))
			return nil
		case <-k.changed:
			timer.Stop()
			log.FromContext(ctx).Info("a new certificate is in use for the hub")
		}
	}
}
