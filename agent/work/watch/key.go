package watch

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

const (
	// DefaultMaxWatches is how many watches of objects there are at most. One costs the agent some 30 KiB and the API
	// server about the same.
	DefaultMaxWatches = 500
	// DefaultRelist is how long a watch lasts before it lists again.
	DefaultRelist = 6 * time.Hour
	// relistSpread lengthens that by up to a half, so that not all lists come together.
	relistSpread = 0.5
	// beyondLimit is logged when some watches are not started.
	beyondLimit = "more watches are wanted than the agent may have"
)

// Key is the place under which an object is claimed: its resource in its namespace, which is empty when the resource
// has none.
type Key struct {
	Resource  schema.GroupVersionResource
	Namespace string
}

// String names the key for a person.
func (k Key) String() string {
	name := k.Resource.GroupResource().String()
	if k.Namespace == "" {
		return name
	}
	return name + " in " + k.Namespace
}

// compare orders keys; it is called some ten thousand times when many are wanted.
func (k Key) compare(other Key) int {
	return cmp.Or(
		cmp.Compare(k.Resource.Resource, other.Resource.Resource), cmp.Compare(k.Resource.Group, other.Resource.Group),
		cmp.Compare(k.Resource.Version, other.Resource.Version), cmp.Compare(k.Namespace, other.Namespace),
	)
}

// Definitions is the watch of all CustomResourceDefinitions.
func Definitions() Key {
	return Key{Resource: schema.GroupVersionResource{
		Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions",
	}}
}

// scope is what one watch covers: one Key or, if it is wide, a resource in all namespaces. A wide one has no Namespace;
// it is for resources with namespaces only.
type scope struct {
	Key
	wide bool
}

// only returns the scope of one Key, and everywhere that of a resource in all namespaces.
func only(key Key) scope { return scope{Key: key} }

func everywhere(resource schema.GroupVersionResource) scope {
	return scope{Key: Key{Resource: resource}, wide: true}
}

// String names the watch for a person.
func (s scope) String() string {
	if s.wide {
		return s.Key.String() + " in all namespaces"
	}
	return s.Key.String()
}

// cover is how changes of the objects of a Key are seen.
type cover int

const (
	// undecided means that the Watcher has not looked at the Key yet, which it does at once.
	undecided cover = iota
	// own means by a watch of the Key, and shared by the wide watch of its resource.
	own
	shared
	// uncovered means not at all: the objects are read every few minutes.
	uncovered
)

// fare is how a wide watch fares.
type fare int

const (
	// untried means that the API server has neither accepted nor refused it yet.
	untried fare = iota
	// works means that it shows changes; settled that it has for leastWide.
	works
	settled
	// fails means that the API server refuses it, or that it keeps failing. It is tried on, and nothing relies on it.
	fails
)

// leastWide is how long a wide watch is kept at least once it works: when it begins, the owners read their objects.
const leastWide = 10 * time.Minute

// situation holds what there is when watches are chosen.
type situation struct {
	running func(scope) bool
	fare    func(schema.GroupVersionResource) fare
	// refused reports whether the API server does not allow the watch of a key itself.
	refused func(Key) bool
}

// choose returns the watches to have for the wanted keys, each with its number of claims, and how each key is covered.
// No more watches than limit work. Where more are wanted, the resources in most namespaces get a wide watch, until
// there is room for the other keys. A key keeps its own watch until the wide one works; what room is left then goes to
// keys of these resources. Running watches go on, so that nothing flaps and no new key takes the watch of another one,
// unless no wide watch could ever are in for the new one. Keys whose watch is refused come last.
func choose(wanted map[Key]int, now situation, limit int) (chosen []scope, covers map[Key]cover) {
	wide := widen(wanted, now, limit)
	room := limit
	for resource := range wide {
		chosen = append(chosen, everywhere(resource))
		if now.relies(resource) {
			room--
		}
	}
	keys := ranked(wanted, now, wide)
	covers = make(map[Key]cover, len(keys))
	for i, key := range keys {
		switch {
		case i < room:
			covers[key], chosen = own, append(chosen, only(key))
		case key.Namespace != "" && wide[key.Resource]:
			covers[key] = shared
		default:
			covers[key] = uncovered
		}
	}
	return chosen, covers
}

// ranked returns the wanted keys, those first that get a watch of their own first.
func ranked(wanted map[Key]int, now situation, wide map[schema.GroupVersionResource]bool) []Key {
	type rank struct {
		key              Key
		standing, claims int
	}
	ranks := make([]rank, 0, len(wanted))
	for key, claims := range wanted {
		ranks = append(ranks, rank{key, now.standing(key, wide), claims})
	}
	slices.SortFunc(ranks, func(a, b rank) int {
		return cmp.Or(cmp.Compare(a.standing, b.standing), cmp.Compare(b.claims, a.claims), a.key.compare(b.key))
	})
	keys := make([]Key, len(ranks))
	for i := range ranks {
		keys[i] = ranks[i].key
	}
	return keys
}

// relies reports whether the wide watch of a resource works.
func (s *situation) relies(resource schema.GroupVersionResource) bool {
	fare := s.fare(resource)
	return fare == works || fare == settled
}

// standing orders keys: the lowest ones get a watch of their own first.
func (s *situation) standing(key Key, wide map[schema.GroupVersionResource]bool) int {
	running, covered := s.running(only(key)), wide[key.Resource] && s.relies(key.Resource)
	switch {
	case key == Definitions():
		return 0 // many works may wait for a definition, and no other event is about one
	case s.refused(key) && running:
		return 6 // it shows nothing, so its place goes to a key whose watch works
	case s.refused(key):
		return 7
	case key.Namespace == "":
		return 1 // no wide watch can are in
	case !covered && running:
		return 2
	case !wide[key.Resource]:
		return 3
	case running:
		return 4
	}
	return 5
}

// widen returns the resources that get a wide watch. One that works goes on until a fifth of the limit is free without
// it, so that it does not come and go with a single key, and for leastWide, so that it does not with many.
func widen(wanted map[Key]int, now situation, limit int) map[schema.GroupVersionResource]bool {
	spread, most, needed := map[schema.GroupVersionResource]int{}, limit, 0
	allowed := map[schema.GroupVersionResource]bool{}
	for key := range wanted {
		allowed[key.Resource] = allowed[key.Resource] || !now.refused(key)
	}
	for key := range wanted {
		if now.refused(key) && (key.Namespace == "" || !allowed[key.Resource]) {
			continue // who may watch no namespace may not watch all, and what is refused needs no room
		}
		if needed++; key.Namespace != "" {
			spread[key.Resource]++
		} else {
			most--
		}
	}
	resources := slices.SortedFunc(maps.Keys(spread), func(a, b schema.GroupVersionResource) int {
		return cmp.Or(cmp.Compare(spread[b], spread[a]), cmp.Compare(a.String(), b.String()))
	})
	wide, sure := map[schema.GroupVersionResource]bool{}, needed
	for _, resource := range resources {
		keep := now.running(everywhere(resource)) && (spread[resource] > 1 || now.fare(resource) == works)
		if keep && now.fare(resource) != fails && len(wide) < most {
			wide[resource] = true
			needed -= spread[resource] - 1
		}
	}
	for _, resource := range resources {
		if needed > limit && !wide[resource] && spread[resource] > 1 && now.fare(resource) != fails && len(wide) < most {
			wide[resource] = true
			needed -= spread[resource] - 1
		}
	}
	for _, resource := range slices.Backward(resources) {
		more := needed + spread[resource] - 1
		if wide[resource] && more <= limit*4/5 && now.fare(resource) != works {
			delete(wide, resource)
			needed = more
		}
	}
	// What is untried may fail, too: then the two would take turns without end.
	for resource := range wide {
		if now.relies(resource) {
			sure -= spread[resource] - 1
		}
	}
	for _, resource := range resources {
		if sure > limit && spread[resource] > 1 && now.fare(resource) == fails {
			wide[resource] = true // tried on
		}
	}
	return wide
}
