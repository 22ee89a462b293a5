package storm

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"time"
)

// takeAway takes something away for a while; it comes back by itself while the storm goes on.
func (s *storm) takeAway(ctx context.Context, e *Edit) error {
	s.await(ctx, e.Action)
	var back func() error
	switch e.Action {
	case killAgent:
		s.cluster.Agent.Kill()
		back = s.cluster.Agent.Start
	case cutLink:
		s.fleet.Link.Cut()
		back = s.mend
	case downHub:
		s.fleet.Hub.KillAPIServer()
		back = func() error { return s.fleet.Hub.StartAPIServer(context.WithoutCancel(ctx)) }
	case downSpoke:
		s.cluster.ControlPlane.KillAPIServer()
		back = func() error { return s.cluster.ControlPlane.StartAPIServer(context.WithoutCancel(ctx)) }
	default:
		return fmt.Errorf("%s takes nothing away", e.Action)
	}
	done := make(chan struct{})
	s.mu.Lock()
	s.away[e.Action] = done
	s.mu.Unlock()
	s.returns.Go(func() error {
		defer close(done)
		timer := time.NewTimer(e.pause)
		defer timer.Stop()
		<-timer.C
		return back()
	})
	return nil
}

// mend lets the agent reach the hub again; it never fails.
func (s *storm) mend() error {
	s.fleet.Link.Mend()
	return nil
}

// await waits until what was taken away is back.
func (s *storm) await(ctx context.Context, a action) {
	s.mu.Lock()
	done := s.away[a]
	s.mu.Unlock()
	if done == nil {
		return
	}
	select {
	case <-done:
	case <-ctx.Done():
	}
}

// awaitReturns waits until all that was taken away is back.
func (s *storm) awaitReturns(ctx context.Context) {
	for _, a := range []action{killAgent, cutLink, downHub, downSpoke} {
		s.await(ctx, a)
	}
}

// hubHash holds what the names of applied records begin with.
func (s *storm) hubHash() string {
	hash := sha256.Sum256([]byte(s.fleet.Link.Host))
	return hex.EncodeToString(hash[:])
}

// contains reports whether an intent names an object.
func contains(intent, object string) bool { return strings.Contains(intent, `"`+object+`"`) }
