package watch

import (
	"errors"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/watch"
)

// overloaded is the answer of an API server that has too much to do.
var overloaded = apierrors.NewTooManyRequests("wait", 1)

// passes lets so much time of the clock pass in small steps, or less once a condition holds, and reports whether it does.
// It does so while the watch waits for the clock: a watch that is open may be one that is still to be checked.
func (r *running) passes(t *testing.T, most time.Duration, until func() bool) bool {
	t.Helper()
	const step = 5 * time.Second
	for end := r.clock.Now().Add(most); r.clock.Now().Before(end) && !until(); r.clock.Step(step) {
		require.Eventually(t, func() bool { return r.clock.HasWaiters() || until() }, patience, tick)
	}
	return until()
}

// asked is how many requests the server got.
func (s *server) asked() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.options)
}

func never() bool { return false }

// kinds are both kinds of watches.
var kinds = map[string]bool{"of events": true, "with a list": false}

// worked is a watch that has shown an object, version 11.
func worked(t *testing.T, change func(*Watch[*corev1.ConfigMap])) *running {
	t.Helper()
	r := start(t, &server{version: "10"}, change)
	r.opens(t)
	r.open().Add(configMap("c"))
	require.Eventually(t, func() bool { return count(r.read(), "update") == 1 }, patience, tick)
	return r
}

// An API server that starts refuses connections first. It accepts the watch then, and has too much to do for the check of
// the version.
//
// Shows: work/watches-fail
func TestAnOverloadedServerThatRefusesTheCheckOfAVersionIsTold(t *testing.T) {
	for name, eventsOnly := range kinds {
		t.Run(name, func(t *testing.T) {
			silent := make(chan error, 100)
			r := worked(t, func(w *Watch[*corev1.ConfigMap]) {
				w.Source.EventsOnly, w.Silent = eventsOnly, func(err error) { silent <- err }
			})
			lists, asked := r.listed(), r.asked()
			r.set(func(s *server) { s.version, s.watchErr, s.listErr = "20", syscall.ECONNREFUSED, syscall.ECONNREFUSED })
			r.open().Stop()
			require.True(t, r.passes(t, 10*time.Minute, func() bool { return r.asked() > asked }))
			r.set(func(s *server) { s.watchErr, s.listErr = nil, overloaded })
			require.True(t, r.passes(t, 10*time.Minute, func() bool { return r.listed() > lists }))
			assert.True(t, r.passes(t, time.Hour, func() bool { return len(silent) > 0 }), "an hour of refusals is told")
		})
	}
}

// A server that accepts a watch and says then that it is overloaded shows no change.
//
// Shows: work/watches-fail
func TestAWatchThatIsAcceptedByAnOverloadedServerIsNotBlind(t *testing.T) {
	for name, eventsOnly := range kinds {
		t.Run(name, func(t *testing.T) {
			silent := make(chan error, 100)
			r := worked(t, func(w *Watch[*corev1.ConfigMap]) {
				w.Source.EventsOnly, w.Silent = eventsOnly, func(err error) { silent <- err }
			})
			r.set(func(s *server) { s.version = "20" })
			from, shown := r.clock.Now(), count(r.read(), "replace")
			var last *watch.RaceFreeFakeWatcher
			seen := r.passes(t, time.Hour, func() bool {
				if now := r.open(); now != nil && now != last {
					last = now
					now.Error(&overloaded.ErrStatus)
					require.Eventually(t, now.IsStopped, patience, tick)
				}
				return len(silent) > 0 || !eventsOnly && count(r.read(), "replace") > shown
			})
			assert.True(t, seen, "it is told, or everything is listed again")
			assert.Less(t, r.clock.Since(from), 10*time.Minute)
		})
	}
}

// Shows: work/restored-cache
func TestAStoreThatIsPutBackWhileTheServerIsOverloadedIsNoticed(t *testing.T) {
	for name, c := range map[string]struct{ eventsOnly, ended, fresh bool }{
		"a watch of events that is cut off":              {eventsOnly: true},
		"a watch with a list that is cut off":            {},
		"a watch with a list that ends at its time":      {ended: true},
		"a watch of events that was never accepted":      {eventsOnly: true, fresh: true},
		"a watch that was never accepted after its list": {fresh: true},
	} {
		t.Run(name, func(t *testing.T) {
			events := func(w *Watch[*corev1.ConfigMap]) { w.Source.EventsOnly = c.eventsOnly }
			var r *running
			if c.fresh {
				r = start(t, &server{version: "10", watchErr: overloaded}, events)
				require.True(t, r.passes(t, time.Hour, func() bool { return count(r.read(), "replace at 10") == 1 }))
			} else {
				r = worked(t, events)
			}
			if c.ended {
				r.clock.Step(15 * time.Minute)
			}
			r.set(func(s *server) { s.version, s.watchErr, s.listErr = "5", overloaded, overloaded })
			if open := r.open(); open != nil {
				open.Stop()
			}
			r.passes(t, 20*time.Minute, never) // longer than a watch lasts
			r.set(func(s *server) { s.watchErr, s.listErr = nil, nil })
			assert.True(t, r.passes(t, 10*time.Minute, func() bool { return count(r.read(), "replace at 5") > 0 }))
		})
	}
}

// A watch of events that ends at its time goes on within its reflector, for days.
func TestFailuresOfBeforeADayAreForgotten(t *testing.T) {
	for name, outage := range map[string]time.Duration{
		"an outage that was told": 2 * time.Minute, "one that was short": 5 * time.Second,
	} {
		t.Run(name, func(t *testing.T) {
			silent := make(chan error, 100)
			away, accepted := apierrors.NewServiceUnavailable("no"), atomic.Int64{}
			r := start(t, &server{version: "10", watchErr: away, listErr: away}, func(w *Watch[*corev1.ConfigMap]) {
				w.Source.EventsOnly, w.Silent = true, func(err error) { silent <- err }
				w.Source.Accepted = func() { accepted.Add(1) }
			})
			r.passes(t, outage, never)
			r.set(func(s *server) { s.watchErr, s.listErr, s.version = nil, nil, "20" })
			require.True(t, r.passes(t, time.Hour, func() bool { return accepted.Load() == 1 }))
			for n := range int64(100) {
				r.clock.Step(15 * time.Minute)
				r.open().Add(configMap("c"))
				r.open().Stop()
				require.Eventually(t, func() bool { return accepted.Load() == n+2 }, patience, tick, "it goes on, and is checked")
			}
			for len(silent) > 0 {
				<-silent
			}
			r.clock.Step(15 * time.Minute)
			r.set(func(s *server) { s.watchErr = overloaded })
			from := r.clock.Now()
			r.open().Stop()
			assert.True(t, r.passes(t, time.Hour, func() bool { return len(silent) > 0 }), "an hour of refusals is told")
			assert.GreaterOrEqual(t, r.clock.Since(from), silentAfter, "and a single one is not")
		})
	}
}

func TestAWatchOfEventsThatIsAwaySaysSoOnce(t *testing.T) {
	silent := make(chan error, 1000)
	broken := apierrors.NewInternalError(errors.New("no"))
	r := start(t, &server{version: "10", watchErr: broken, listErr: broken}, func(w *Watch[*corev1.ConfigMap]) {
		w.Source.EventsOnly, w.Silent = true, func(err error) { silent <- err }
	})
	r.passes(t, time.Hour, never)
	assert.Len(t, silent, 1)
	assert.Len(t, r.logged(), 1)
}
