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

// Key is what an object is claimed under: its resource in its namespace, which is empty when the resource has none.
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

// choose returns the watches to have for the wanted keys, each with its number of claims, and how each key is covered.
// There are no more watches than limit. Where more are wanted, the resources in most namespaces get a wide watch, until
// there is room for the other keys; what room is left then goes to keys of these resources. Running watches go on, so
// that nothing flaps.
func choose(wanted map[Key]int, running func(scope) bool, limit int) (chosen []scope, covers map[Key]cover) {
	wide := widen(wanted, running, limit)
	keys := slices.SortedFunc(maps.Keys(wanted), func(a, b Key) int {
		return cmp.Or(
			cmp.Compare(standing(a, wide, running), standing(b, wide, running)),
			cmp.Compare(wanted[b], wanted[a]), cmp.Compare(a.String(), b.String()),
		)
	})
	covers = make(map[Key]cover, len(keys))
	for i, key := range keys {
		switch {
		case i < limit-len(wide):
			covers[key], chosen = own, append(chosen, only(key))
		case key.Namespace != "" && wide[key.Resource]:
			covers[key] = shared
		default:
			covers[key] = uncovered
		}
	}
	for resource := range wide {
		chosen = append(chosen, everywhere(resource))
	}
	return chosen, covers
}

// standing orders keys: the lowest ones get a watch of their own first.
func standing(key Key, wide map[schema.GroupVersionResource]bool, running func(scope) bool) int {
	switch {
	case key == Definitions():
		return 0 // many works may wait for a definition, and no other event is about one
	case key.Namespace == "":
		return 1 // no wide watch can stand in
	case !wide[key.Resource] && running(only(key)):
		return 2
	case !wide[key.Resource]:
		return 3
	case running(only(key)):
		return 4
	}
	return 5
}

// widen returns the resources that get a wide watch. One that runs goes on until a fifth of the limit is free without
// it, so that it does not come and go with a single key.
func widen(wanted map[Key]int, running func(scope) bool, limit int) map[schema.GroupVersionResource]bool {
	spread, most := map[schema.GroupVersionResource]int{}, limit
	for key := range wanted {
		if key.Namespace == "" {
			most--
		} else {
			spread[key.Resource]++
		}
	}
	resources := slices.SortedFunc(maps.Keys(spread), func(a, b schema.GroupVersionResource) int {
		return cmp.Or(cmp.Compare(spread[b], spread[a]), cmp.Compare(a.String(), b.String()))
	})
	wide, needed := map[schema.GroupVersionResource]bool{}, len(wanted)
	add := func(resource schema.GroupVersionResource) {
		if !wide[resource] && spread[resource] > 1 && len(wide) < most {
			wide[resource] = true
			needed -= spread[resource] - 1
		}
	}
	for _, resource := range resources {
		if running(everywhere(resource)) {
			add(resource)
		}
	}
	for _, resource := range resources {
		if needed > limit {
			add(resource)
		}
	}
	for _, resource := range slices.Backward(resources) {
		if more := needed + spread[resource] - 1; wide[resource] && more <= limit*4/5 {
			delete(wide, resource)
			needed = more
		}
	}
	return wide
}
