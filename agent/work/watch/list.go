package watch

import (
	"maps"
	"slices"

	"github.com/spokelet/spokelet/agent/work/manifest"
)

// wanted returns the watches that are wanted, each with the number of claims.
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

// refuse marks a watch that the API server does not allow, and wakes its owners once so that they read their objects.
// It reports whether that is new.
func (s *Store) refuse(key Key, cause string) bool {
	s.mu.Lock()
	if have, known := s.refused[key]; s.watched[key] == nil || (known && have == cause) {
		s.mu.Unlock()
		return false
	}
	s.refused[key] = cause
	owners := slices.Collect(maps.Keys(s.watched[key]))
	s.mu.Unlock()
	s.wakeAll(owners)
	return true
}

// list is the complete state of what a watch covers.
type list struct {
	// objects has those that exist, at least the claimed ones.
	objects map[manifest.ID]Event
	// version is that of the state, before the one of the list before; empty for none.
	version, before string
	// mark is as the Store counted when the list began to arrive: objects that were claimed later may be missing in it.
	mark uint64
}

// mark returns the count of claims of objects so far.
func (s *Store) mark() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.marks
}

// has reports whether an object is claimed.
func (s *Store) has(id manifest.ID) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.objects[id] != nil
}

// replace stores the complete state of what a watch covers: claimed objects that are not in it were gone at its
// version. It reports whether the state is older than an earlier one.
func (s *Store) replace(covered scope, l list) (wentBack bool) {
	s.mu.Lock()
	maps.DeleteFunc(s.refused, func(key Key, _ string) bool { return covered.covers(key) })
	claimed := s.claimed(covered)
	if wentBack = s.wentBack(l, claimed); wentBack {
		s.distrust(claimed)
	}
	missing := map[manifest.ID]struct{}{}
	for _, id := range claimed {
		if _, there := l.objects[id]; !there && s.objects[id].mark <= l.mark {
			missing[id] = struct{}{}
		}
	}
	s.mu.Unlock()
	for id, event := range l.objects {
		s.Observe(id, event)
	}
	for id := range missing {
		s.Observe(id, Event{Deleted: true, Version: l.version})
	}
	return wentBack
}

// doubt marks the objects of a watch whose kind the API server does not serve. Their owners read them: the objects may
// be gone with their kind, or exist in another version of it.
func (s *Store) doubt(covered scope) {
	s.mu.Lock()
	claimed := s.claimed(covered)
	s.mu.Unlock()
	for _, id := range claimed {
		s.Observe(id, Event{Unknown: true})
	}
}

// covered returns the keys that are claimed of those that a watch covers.
func (s *Store) covered(by scope) []Key {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.keys(by)
}

// keys is covered, with the lock.
func (s *Store) keys(covered scope) []Key {
	if !covered.wide {
		return []Key{covered.Key}
	}
	var keys []Key
	for key := range s.watched {
		if covered.covers(key) {
			keys = append(keys, key)
		}
	}
	return keys
}

// claimed returns the objects that a watch is to cover. An object with several owners comes several times.
func (s *Store) claimed(covered scope) []manifest.ID {
	owners := map[Owner]struct{}{} // not all: at a start, each watch lists once
	for _, key := range s.keys(covered) {
		for o := range s.watched[key] {
			owners[o] = struct{}{}
		}
	}
	var claimed []manifest.ID
	for o := range owners {
		for id, at := range s.owners[o].objects {
			if covered.covers(at) {
				claimed = append(claimed, id)
			}
		}
	}
	return claimed
}

// wentBack reports whether a list is older than what the same watch showed before. That happens only when the store of
// the API server was restored to an earlier state.
func (s *Store) wentBack(l list, claimed []manifest.ID) bool {
	if Older(l.version, l.before) {
		return true
	}
	for _, id := range claimed {
		if last := s.objects[id].last; last != nil && Older(l.version, last.Version) {
			return true
		}
	}
	return false
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
