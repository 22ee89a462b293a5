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

// replace stores the complete state of a watch: claimed objects that are not in present were gone at version. It
// reports whether the state is older than an earlier one.
func (s *Store) replace(key Key, present map[manifest.ID]Event, version string) (wentBack bool) {
	s.mu.Lock()
	delete(s.refused, key)
	claimed := s.claimed(key)
	if wentBack = s.wentBack(key, version, claimed); wentBack {
		s.distrust(claimed)
	}
	s.versions[key] = version
	missing := map[manifest.ID]struct{}{}
	for _, id := range claimed {
		if _, there := present[id]; !there {
			missing[id] = struct{}{}
		}
	}
	s.mu.Unlock()
	for id, event := range present {
		s.Observe(id, event)
	}
	for id := range missing {
		s.Observe(id, Event{Deleted: true, Version: version})
	}
	return wentBack
}

// doubt marks the objects of a watch whose kind the API server does not serve. Their owners read them: the objects may
// be gone with their kind, or exist in another version of it.
func (s *Store) doubt(key Key) {
	s.mu.Lock()
	claimed := s.claimed(key)
	s.mu.Unlock()
	for _, id := range claimed {
		s.Observe(id, Event{Unknown: true})
	}
}

// claimed returns the objects that a watch is to cover. An object with several owners comes several times.
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

// wentBack reports whether a list is older than what the same watch showed before. That happens only when the store of
// the API server was restored to an earlier state.
func (s *Store) wentBack(key Key, version string, claimed []manifest.ID) bool {
	if Older(version, s.versions[key]) {
		return true
	}
	for _, id := range claimed {
		if last := s.objects[id].last; last != nil && Older(version, last.Version) {
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
