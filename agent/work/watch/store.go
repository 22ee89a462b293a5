package watch

import (
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/spokelet/spokelet/agent/work/manifest"
)

// Owner claims objects: a ManifestWork or, when Applied is set, an AppliedManifestWork that has no work any more. Name
// is the name of that object.
type Owner struct {
	Applied bool
	Name    string
}

// Store has the state of the objects of all owners. It sends no request.
type Store struct {
	mu      sync.Mutex
	objects map[manifest.ID]*entry
	owners  map[Owner]*claim
	// watched counts the claims of each owner on each key; covers is how changes of a key are seen.
	watched map[Key]map[Owner]int
	covers  map[Key]cover
	// refused has the watches that the API server refuses, or that keep failing.
	refused map[scope]refusal
	// working has since when the wide watch of a resource has shown changes.
	working map[schema.GroupVersionResource]time.Time
	// since has the version after which the wide watch of a resource showed changes first.
	since map[schema.GroupVersionResource]string
	// versions has the newest resource version that the watch of each key showed.
	versions map[Key]string
	// wake is called, without the lock, for each owner of an object that changed.
	wake func(Owner)
	// changed is called, without the lock, when the set of wanted watches changed.
	changed func()
}

// entry is one object. It has one state for each owner that claims it, usually one.
type entry struct {
	last   *Event
	states []ownedState
}

// ownedState is the state of one owner; nil until its first request.
type ownedState struct {
	owner Owner
	state *State
}

// claim holds what one owner claims.
type claim struct {
	objects map[manifest.ID]Key
	groups  []string
	// definitions counts the events of definitions of such kinds.
	definitions int
}

// refusal is why a watch shows nothing. What passes, such as an outage, costs a watch neither its place nor its count.
type refusal struct {
	cause  string
	passes bool
}

// NewStore returns an empty Store. wake is called for each owner of an object that changed, and changed when the set of
// wanted watches changed; neither may block.
func NewStore(wake func(Owner), changed func()) *Store {
	return &Store{
		objects: map[manifest.ID]*entry{}, owners: map[Owner]*claim{},
		watched: map[Key]map[Owner]int{}, covers: map[Key]cover{}, refused: map[scope]refusal{},
		working: map[schema.GroupVersionResource]time.Time{}, since: map[schema.GroupVersionResource]string{},
		versions: map[Key]string{},
		wake:     wake, changed: changed,
	}
}

// Claim sets the objects of an owner, each with the watch that covers it, and the API groups whose kinds it waits for.
// It precedes the requests about the objects, so that no event after them is missed.
func (s *Store) Claim(o Owner, objects map[manifest.ID]Key, groups []string) {
	s.mu.Lock()
	before := s.owners[o]
	if before == nil {
		before = &claim{}
	}
	if maps.Equal(before.objects, objects) && slices.Equal(before.groups, groups) {
		s.mu.Unlock()
		return
	}
	moved := false
	for id, key := range objects {
		moved = s.add(o, id, before.objects[id], key) || moved
	}
	for id, key := range before.objects {
		if _, kept := objects[id]; !kept {
			s.drop(o, id)
			moved = s.unwatch(o, key) || moved
		}
	}
	moved = s.countGroups(o, before.groups, groups) || moved
	s.owners[o] = &claim{objects: objects, groups: groups, definitions: before.definitions}
	if len(objects) == 0 && len(groups) == 0 {
		delete(s.owners, o)
	}
	s.mu.Unlock()
	if moved {
		s.changed()
	}
}

// Forget drops everything about an owner.
func (s *Store) Forget(o Owner) { s.Claim(o, nil, nil) }

// add adds one object to an owner, and moves it from the watch was to the watch key.
func (s *Store) add(o Owner, id manifest.ID, was, key Key) bool {
	e := s.objects[id]
	if e == nil {
		e = &entry{}
		s.objects[id] = e
	}
	if e.of(o) == nil {
		e.states = append(e.states, ownedState{owner: o})
	}
	if was == key {
		return false
	}
	moved := s.watch(o, key)
	if was != (Key{}) {
		moved = s.unwatch(o, was) || moved
	}
	return moved
}

// drop takes one object from an owner.
func (s *Store) drop(o Owner, id manifest.ID) {
	e := s.objects[id]
	if e == nil {
		return
	}
	e.states = slices.DeleteFunc(e.states, func(owned ownedState) bool { return owned.owner == o })
	if len(e.states) == 0 {
		delete(s.objects, id)
	}
}

// watch adds one claim to a watch and reports whether it is the first.
func (s *Store) watch(o Owner, key Key) bool {
	claims := s.watched[key]
	if claims == nil {
		s.watched[key] = map[Owner]int{o: 1}
		return true
	}
	claims[o]++
	return false
}

// unwatch takes one claim from a watch and reports whether it was the last.
func (s *Store) unwatch(o Owner, key Key) bool {
	claims := s.watched[key]
	if claims[o]--; claims[o] > 0 {
		return false
	}
	if delete(claims, o); len(claims) > 0 {
		return false
	}
	delete(s.watched, key)
	delete(s.covers, key)
	delete(s.versions, key)
	return true
}

// countGroups claims the watch of definitions when an owner begins to wait for kinds, and drops it afterwards.
func (s *Store) countGroups(o Owner, before, after []string) bool {
	key := Definitions()
	switch {
	case len(before) == 0 && len(after) > 0:
		return s.watch(o, key)
	case len(before) > 0 && len(after) == 0:
		return s.unwatch(o, key)
	}
	return false
}

// of returns the state of an owner, nil when it does not claim the object.
func (e *entry) of(o Owner) *ownedState {
	for i := range e.states {
		if e.states[i].owner == o {
			return &e.states[i]
		}
	}
	return nil
}

// Look returns what the owner knows of an object, and how that differs from the last event.
func (s *Store) Look(o Owner, id manifest.ID) (State, Drift) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.objects[id]
	if e == nil {
		return State{}, Unchanged
	}
	owned := e.of(o)
	if owned == nil || owned.state == nil {
		return State{Observed: e.last}, Unchanged
	}
	drift := owned.state.drift(e.last)
	known := *owned.state
	known.Observed = e.last
	return known, drift
}

// Record stores the state after a request; its Observed must be as Look returned it before the request. When a newer
// event was observed meanwhile the owner is woken.
func (s *Store) Record(o Owner, id manifest.ID, state State) {
	s.mu.Lock()
	e := s.objects[id]
	var owned *ownedState
	if e != nil {
		owned = e.of(o)
	}
	if owned == nil {
		s.mu.Unlock()
		return
	}
	owned.state = &state
	late := owned.state.drift(e.last) != Unchanged
	s.mu.Unlock()
	if late {
		s.wake(o)
	}
}

// Measure stores how many bytes the largest answer about an object had, if a state of it is known; zero changes
// nothing.
func (s *Store) Measure(o Owner, id manifest.ID, bytes int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.objects[id]
	if e == nil || bytes == 0 {
		return
	}
	if owned := e.of(o); owned != nil && owned.state != nil {
		state := *owned.state
		state.Bytes = bytes
		owned.state = &state
	}
}

// Observe stores an event and wakes the owners whose state differs from it. Objects that nobody claims are not
// remembered.
func (s *Store) Observe(id manifest.ID, event Event) {
	s.mu.Lock()
	woken := s.waiting(id)
	e := s.objects[id]
	if e == nil || (e.last != nil && (Older(event.Version, e.last.Version) || *e.last == event && !e.believed())) {
		s.mu.Unlock()
		s.wakeAll(woken)
		return
	}
	e.last = &event
	for _, owned := range e.states {
		if owned.state != nil && owned.state.drift(e.last) != Unchanged {
			woken = append(woken, owned.owner)
		}
	}
	s.mu.Unlock()
	s.wakeAll(woken)
}

// believed reports whether an owner read the object after a watch could not show it, and found it. If the watch cannot
// again, that is news: a kind may have been gone for a moment, come back, and be gone with the object now.
func (e *entry) believed() bool {
	return e.last.Unknown && slices.ContainsFunc(e.states, func(owned ownedState) bool {
		return owned.state != nil && owned.state.Observed == e.last && owned.state.Object.Exists
	})
}

// wakeAll wakes the owners.
func (s *Store) wakeAll(owners []Owner) {
	for _, o := range owners {
		s.wake(o)
	}
}

// waiting returns the owners that wait for a kind, when the object is the definition of one in their group.
func (s *Store) waiting(id manifest.ID) []Owner {
	key := Definitions()
	if id.Group != key.Resource.Group || id.Resource != key.Resource.Resource {
		return nil
	}
	_, group, _ := strings.Cut(id.Name, ".")
	var found []Owner
	for o, c := range s.owners {
		if slices.Contains(c.groups, group) {
			c.definitions++
			found = append(found, o)
		}
	}
	return found
}

// Definitions counts the events of definitions of kinds that the owner waits for.
func (s *Store) Definitions(o Owner) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c := s.owners[o]; c != nil {
		return c.definitions
	}
	return 0
}

// Unwatched reports whether no watch covers an object of an owner.
func (s *Store) Unwatched(o Owner, id manifest.ID) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.owners[o]
	if c == nil {
		return true
	}
	key, claimed := c.objects[id]
	return !claimed || s.unseen(key)
}

// Size is how much a Store has. Wanted counts the keys; of these the watch of Refused keys does not work, and Beyond
// keys have none because of the limit and are in no wide watch that works.
type Size struct{ Works, Applied, Objects, Wanted, Refused, Beyond int }

// Size counts owners, objects and watches.
func (s *Store) Size() Size {
	s.mu.Lock()
	defer s.mu.Unlock()
	size := Size{Objects: len(s.objects), Wanted: len(s.watched)}
	for key := range s.watched {
		switch cover := s.covers[key]; {
		case !s.unseen(key):
		case cover == shared || cover == uncovered:
			size.Beyond++
		default:
			size.Refused++
		}
	}
	for o := range s.owners {
		if o.Applied {
			size.Applied++
		} else {
			size.Works++
		}
	}
	return size
}
