package addon

import (
	"context"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/lease"
)

// targetState keeps the last state of one target. It is the handler of its watch.
type targetState struct {
	// changed is called without the lock after each list and event.
	changed func(before, after client.Object)
	clock   clock.PassiveClock

	mu     sync.Mutex
	synced bool
	cause  error
	object client.Object
	// refusedSince is since when a target that was observed before may not be watched; zero when it may. refused is set
	// when that was reported.
	refusedSince time.Time
	refused      bool
	// renewed is the last renewal of a Lease that came as an event; skew follows from it and the one before.
	renewed renewal
	skew    *skew
}

func (s *targetState) get() observation {
	s.mu.Lock()
	defer s.mu.Unlock()
	if apierrors.IsForbidden(s.cause) && (!s.synced || s.refused) {
		return observation{cause: s.cause, refused: s.cause}
	}
	if !s.synced || s.cause != nil {
		return observation{cause: s.cause}
	}
	return observation{known: true, object: s.object, skew: s.skew}
}

// answered records the result of a list or watch request. The first success after a failure counts as a change, because
// events may have been missed, and so does the refusal of a target that was never observed, because it lasts.
func (s *targetState) answered(err error) {
	s.mu.Lock()
	recovered := s.synced && s.cause != nil && err == nil
	refused := !s.synced && apierrors.IsForbidden(err) && !apierrors.IsForbidden(s.cause)
	refused = s.refuse(err) || refused
	s.cause = err
	s.mu.Unlock()
	if recovered || refused {
		s.changed(nil, nil)
	}
}

// refuse follows for how long a target that was observed before may not be watched. It reports whether that is long
// enough to be reported, once.
func (s *targetState) refuse(err error) bool {
	switch {
	case !s.synced || !apierrors.IsForbidden(err):
		s.refusedSince, s.refused = time.Time{}, false
	case s.refusedSince.IsZero():
		s.refusedSince = s.clock.Now()
	case !s.refused && s.clock.Since(s.refusedSince) >= lease.AddonGrace:
		s.refused = true
		return true
	}
	return false
}

// Replace implements watch.Handler. A list does not show when a Lease was renewed.
func (s *targetState) Replace(_ context.Context, objects []client.Object, _ string) {
	if len(objects) == 0 {
		s.set(nil)
		return
	}
	s.set(objects[0])
}

// Update implements watch.Handler.
func (s *targetState) Update(_ context.Context, object client.Object) {
	s.measureSkew(object)
	s.set(object)
}

// Delete implements watch.Handler.
func (s *targetState) Delete(context.Context, client.Object) { s.set(nil) }

// set records the target; nil when it is absent.
func (s *targetState) set(object client.Object) {
	s.mu.Lock()
	before := s.object
	if !s.synced {
		before = nil
	}
	s.synced, s.object = true, object
	s.mu.Unlock()
	s.changed(before, object)
}

// measureSkew compares our clock with the one that renewed a Lease.
func (s *targetState) measureSkew(object client.Object) {
	after, ok := object.(*coordinationv1.Lease)
	s.mu.Lock()
	defer s.mu.Unlock()
	before, had := s.object.(*coordinationv1.Lease)
	if !ok || !had || after.Spec.RenewTime.IsZero() || before.Spec.RenewTime.Equal(after.Spec.RenewTime) {
		return
	}
	now := renewal{carried: after.Spec.RenewTime.Time, seen: s.clock.Now()}
	if s.skew = nil; !s.renewed.seen.IsZero() {
		s.skew = measure(s.renewed, now)
	}
	s.renewed = now
}
