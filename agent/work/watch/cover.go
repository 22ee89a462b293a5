package watch

import (
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/spokelet/spokelet/agent/work/manifest"
	kit "github.com/spokelet/spokelet/internal/watch"
)

// assign sets how the wanted keys are covered, and wakes the owners of those that are not any more so that they read
// their objects.
func (s *Store) assign(chosen []scope, covers map[Key]cover) {
	running := make(map[scope]bool, len(chosen))
	for _, one := range chosen {
		running[one] = true
	}
	s.mu.Lock()
	var woken []Owner
	before, behind := map[Key]bool{}, map[Key]bool{}
	for key := range s.watched {
		before[key] = s.unseen(key)
		// Its own watch has yet to show what happened before the wide one began.
		since := s.since[key.Resource]
		shown := s.versions[key]
		behind[key] = s.covers[key] == own && covers[key] == shared && (shown == "" || Older(shown, since))
	}
	// A key without a watch keeps its refusal: else it and another one that is refused would take turns.
	maps.DeleteFunc(s.refused, func(one scope, _ refusal) bool {
		return !running[one] && (one.wide || s.watched[one.Key] == nil)
	})
	maps.DeleteFunc(s.working, func(of schema.GroupVersionResource, _ time.Time) bool { return !running[everywhere(of)] })
	maps.DeleteFunc(s.since, func(of schema.GroupVersionResource, _ string) bool { return !running[everywhere(of)] })
	for key, was := range before {
		s.covers[key] = covers[key]
		if covers[key] != own {
			delete(s.versions, key) // the next watch of the key may be shown an earlier state
		}
		if !was && s.unseen(key) {
			woken = slices.AppendSeq(woken, maps.Keys(s.watched[key]))
		}
	}
	claimed := s.claimedIn(func(key Key) bool { return behind[key] })
	s.mu.Unlock()
	s.wakeAll(woken)
	for _, id := range claimed {
		s.Observe(id, Event{Unknown: true})
	}
}

// unseen reports whether no watch shows changes of the objects of a key. A watch that has not begun is expected to.
func (s *Store) unseen(key Key) bool {
	one := only(key)
	switch s.covers[key] {
	case uncovered:
		return true
	case shared:
		one = everywhere(key.Resource)
	case undecided, own:
	}
	_, refused := s.refused[one]
	return refused
}

// keysOf returns the keys that depend on a watch. With a wide one these are those without a watch of their own.
func (s *Store) keysOf(one scope) []Key {
	if !one.wide {
		if s.covers[one.Key] == shared || s.covers[one.Key] == uncovered || s.watched[one.Key] == nil {
			return nil // it ends
		}
		return []Key{one.Key}
	}
	var keys []Key
	for key := range s.watched {
		if key.Resource == one.Resource && key.Namespace != "" && s.covers[key] != own {
			keys = append(keys, key)
		}
	}
	return keys
}

// refuse marks a watch that the API server does not allow, or that keeps failing, and wakes the owners who depend on it
// once so that they read their objects. It reports whether that is new.
func (s *Store) refuse(one scope, why error) bool {
	cause := refusal{cause: why.Error(), passes: !kit.Refused(why)}
	s.mu.Lock()
	keys := s.keysOf(one)
	have, known := s.refused[one]
	if len(keys) == 0 && !one.wide || have == cause && known {
		s.mu.Unlock()
		return false
	}
	s.refused[one] = cause
	if one.wide {
		delete(s.working, one.Resource)
	}
	var woken []Owner
	for _, key := range keys {
		if !known && s.covers[key] != uncovered { // they read them already
			woken = slices.AppendSeq(woken, maps.Keys(s.watched[key]))
		}
	}
	chooses := !known && (one.wide || s.lacks())
	s.mu.Unlock()
	s.wakeAll(woken)
	if chooses { // there may be one that can use its place
		s.changed()
	}
	return true
}

// lacks reports whether a key has no watch.
func (s *Store) lacks() bool {
	for _, c := range s.covers {
		if c == uncovered {
			return true
		}
	}
	return false
}

// follow takes up that a wide watch shows all changes after version from now on. Of what happened before nothing is
// known, so the owners who depend on it read their objects once. No version means that it goes on where it was. It
// reports whether the watch did not work before.
func (s *Store) follow(one scope, version string, now time.Time) (begins bool) {
	s.mu.Lock()
	delete(s.refused, one)
	_, worked := s.working[one.Resource]
	if !worked {
		s.working[one.Resource] = now
	}
	var claimed []manifest.ID
	if version != "" {
		s.since[one.Resource] = version
		claimed = s.claimedIn(func(key Key) bool { return key.Resource == one.Resource && !s.sees(key) })
	}
	s.mu.Unlock()
	for _, id := range claimed {
		s.Observe(id, Event{Unknown: true, Version: version})
	}
	if !worked {
		s.changed()
	}
	return !worked
}

// resume takes up that a watch that failed goes on where it was, so that no change was missed.
func (s *Store) resume(one scope) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.refused, one)
}

// sees reports whether a watch of the key itself shows its objects.
func (s *Store) sees(key Key) bool {
	_, refused := s.refused[only(key)]
	return s.covers[key] == own && !refused && s.versions[key] != ""
}

// situation returns how the watches fare.
func (s *Store) situation(now time.Time) situation {
	s.mu.Lock()
	defer s.mu.Unlock()
	fares, refused := map[schema.GroupVersionResource]fare{}, make(map[Key]bool, len(s.refused))
	for key := range s.watched {
		if _, known := fares[key.Resource]; !known {
			fares[key.Resource] = s.fare(key.Resource, now)
		}
	}
	for one, why := range s.refused {
		if !one.wide && !why.passes {
			refused[one.Key] = true
		}
	}
	return situation{
		fare:    func(of schema.GroupVersionResource) fare { return fares[of] },
		refused: func(key Key) bool { return refused[key] },
	}
}

// fare returns how a wide watch fares.
func (s *Store) fare(resource schema.GroupVersionResource, now time.Time) fare {
	since, working := s.working[resource]
	_, refused := s.refused[everywhere(resource)]
	switch {
	case refused:
		return fails
	case working && now.Sub(since) >= leastWide:
		return settled
	case working:
		return works
	}
	return untried
}

// claims reports whether an owner claims an object.
func (s *Store) claims(id manifest.ID) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.objects[id] != nil
}

// newest returns the newest version in which a claimed object of a resource was observed, read or written.
func (s *Store) newest(resource schema.GroupVersionResource) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	version := ""
	later := func(other string) {
		if version == "" || Older(version, other) {
			version = other
		}
	}
	for _, id := range s.claimedIn(func(key Key) bool { return key.Resource == resource }) {
		e := s.objects[id]
		if e.last != nil {
			later(e.last.Version)
		}
		for _, owned := range e.states {
			if owned.state != nil {
				later(owned.state.Object.Version)
			}
		}
	}
	return version
}

// restored takes up that the API server went back to an earlier state: no version of a resource orders anything any
// more, and the owners read its objects.
func (s *Store) restored(resource schema.GroupVersionResource) {
	s.mu.Lock()
	claimed := s.claimedIn(func(key Key) bool { return key.Resource == resource })
	s.distrust(claimed)
	s.mu.Unlock()
	for _, id := range claimed {
		s.Observe(id, Event{Unknown: true})
	}
}
