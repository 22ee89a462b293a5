package watch

import (
	"time"

	"github.com/spokelet/spokelet/agent/work/manifest"
)

// wanted returns the keys that are wanted, each with the number of claims.
func (s *Store) wanted() map[Key]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	wanted := make(map[Key]int, len(s.watched))
	for key, claims := range s.watched {
		for _, count := range claims {
			wanted[key] += count
		}
	}
	return wanted
}

// replace stores the complete state of a watch of one key: claimed objects that are not in present were gone at
// version. It reports whether the state is older than what the same watch showed before. That happens only when the
// store of the API server was restored to an earlier state.
func (s *Store) replace(key Key, present map[manifest.ID]Event, version string) (wentBack bool) {
	s.mu.Lock()
	was, refused := s.refused[only(key)]
	delete(s.refused, only(key))
	// Those without a watch that were refused may be allowed as well now, and be worth a wide watch.
	chooses := refused && !was.passes && s.lacks()
	claimed := s.claimed(key)
	if wentBack = Older(version, s.versions[key]); wentBack {
		s.distrust(claimed)
	}
	if s.watched[key] != nil {
		s.versions[key] = version
	}
	missing := map[manifest.ID]struct{}{}
	for _, id := range claimed {
		if _, there := present[id]; !there {
			missing[id] = struct{}{}
		}
	}
	s.mu.Unlock()
	if chooses {
		s.changed()
	}
	for id, event := range present {
		s.Observe(id, event)
	}
	for id := range missing {
		s.Observe(id, Event{Deleted: true, Version: version})
	}
	return wentBack
}

// observeAt stores an event of the watch of one key.
func (s *Store) observeAt(key Key, id manifest.ID, event Event) {
	s.mu.Lock()
	if s.watched[key] != nil && !Older(event.Version, s.versions[key]) {
		s.versions[key] = event.Version
	}
	s.mu.Unlock()
	s.Observe(id, event)
}

// doubt marks the objects of a watch whose kind the API server does not serve. Their owners read them: the objects may
// be gone with their kind, or exist in another version of it.
func (s *Store) doubt(one scope) {
	s.mu.Lock()
	keys := map[Key]bool{}
	for _, key := range s.keysOf(one) {
		keys[key] = true
	}
	claimed := s.claimedIn(func(key Key) bool { return keys[key] })
	s.mu.Unlock()
	for _, id := range claimed {
		s.Observe(id, Event{Unknown: true})
	}
}

// claimed returns the objects of a key. An object with several owners comes several times.
func (s *Store) claimed(key Key) []manifest.ID {
	var claimed []manifest.ID
	for o := range s.watched[key] { // not all owners: at a start, each watch lists once
		for id, at := range s.owners[o].objects {
			if at == key {
				claimed = append(claimed, id)
			}
		}
	}
	return claimed
}

// claimedIn returns the objects of some keys. It looks at each claim once.
func (s *Store) claimedIn(in func(Key) bool) []manifest.ID {
	var claimed []manifest.ID
	for _, c := range s.owners {
		for id, key := range c.objects {
			if in(key) {
				claimed = append(claimed, id)
			}
		}
	}
	return claimed
}

// distrust drops the versions in which objects were observed and written. Versions are counted from an earlier state
// again, so they do not order anything.
func (s *Store) distrust(claimed []manifest.ID) {
	for _, id := range claimed {
		e := s.objects[id]
		e.last = nil
		for i := range e.states {
			if known := e.states[i].state; known != nil {
				unknown := *known
				unknown.Observed = nil
				unknown.Object.Version, unknown.Object.Generation, unknown.Object.Sole = "", 0, false
				e.states[i].state = &unknown
			}
		}
	}
}

const (
	// burst is how often an object is repaired, or read because it changed, without a pause.
	burst = 10
	// refill is how long it takes to be allowed once more after that. So two writers that fight for good cost one write
	// per refill, an object that is written all the time one read, and a single change is repaired immediately.
	refill = 15 * time.Second
)

// Limiter is a token bucket; the zero value is full.
type Limiter struct {
	spent float64
	at    time.Time
}

// refilled returns the limiter at now.
func (l Limiter) refilled(now time.Time) Limiter {
	if !l.at.IsZero() {
		l.spent = max(0, l.spent-float64(now.Sub(l.at))/float64(refill))
	}
	l.at = now
	return l
}

// Spend takes one token, or returns false and the instant at which there is one again.
func (l Limiter) Spend(now time.Time) (Limiter, time.Time, bool) {
	l = l.refilled(now)
	if l.spent > burst-1 {
		missing := l.spent - (burst - 1)
		return l, now.Add(time.Duration(missing * float64(refill))), false
	}
	l.spent++
	return l, time.Time{}, true
}
