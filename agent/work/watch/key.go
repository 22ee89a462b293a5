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
	// beyondLimit is why a watch was not started.
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

// scope is what one watch covers: one key or, when it is wide, those of a resource in all namespaces. A wide one has no
// Namespace and covers only keys with one, so it is never taken for the key of a resource without namespaces.
type scope struct {
	Key
	wide bool
}

// only returns the scope of one key, and everywhere that of all namespaces of a resource.
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

// covers reports whether the watch shows the objects of a key.
func (s scope) covers(key Key) bool {
	return key == s.Key && !s.wide || s.wide && key.Resource == s.Resource && key.Namespace != ""
}

// fare is how a wide watch fares.
type fare int

const (
	// untried means that it has not listed yet; its narrow watches go on as far as there is room.
	untried fare = iota
	// works means that it listed and stands for its narrow watches.
	works
	// fails means that the API server refuses it. It does not count, and is tried on.
	fails
)

// choose returns the watches to have for the wanted keys, each with its number of claims, and the keys beyond: those
// that none covers. No more than limit count. While the keys exceed the limit, the resource in most namespaces gets one
// wide watch instead of its narrow ones. Running watches go on, so that nothing flaps; of the others those with more
// claims come first.
func choose(
	wanted map[Key]int, running func(scope) bool, fares map[schema.GroupVersionResource]fare, limit int,
) (chosen []scope, beyond []Key) {
	wide, retried := widen(wanted, running, fares, limit)
	var narrow, spare []Key
	for key := range wanted {
		switch {
		case key.Namespace == "" || !wide[key.Resource]:
			narrow = append(narrow, key)
		case fares[key.Resource] == untried && running(only(key)):
			spare = append(spare, key)
		}
	}
	room := limit - len(wide)
	narrow, beyond = firsts(narrow, wanted, running, room)
	spare, _ = firsts(spare, wanted, running, room-len(narrow))
	for _, key := range append(narrow, spare...) {
		chosen = append(chosen, only(key))
	}
	for resource := range wide {
		chosen = append(chosen, everywhere(resource))
	}
	for _, resource := range retried {
		chosen = append(chosen, everywhere(resource))
	}
	return chosen, beyond
}

// widen returns the resources that get a wide watch, and those whose wide watch fails and is only tried on. One that
// runs goes on until the narrow ones leave a fifth of the limit free.
func widen(
	wanted map[Key]int, running func(scope) bool, fares map[schema.GroupVersionResource]fare, limit int,
) (wide map[schema.GroupVersionResource]bool, retried []schema.GroupVersionResource) {
	spread := map[schema.GroupVersionResource]int{}
	for key := range wanted {
		if key.Namespace != "" {
			spread[key.Resource]++
		}
	}
	resources := slices.SortedFunc(maps.Keys(spread), func(a, b schema.GroupVersionResource) int {
		return cmp.Or(cmp.Compare(spread[b], spread[a]), cmp.Compare(a.String(), b.String()))
	})
	wide, count, most := map[schema.GroupVersionResource]bool{}, len(wanted), limit
	if wanted[Definitions()] > 0 {
		most--
	}
	add := func(resource schema.GroupVersionResource) {
		if !wide[resource] && fares[resource] != fails && len(wide) < most {
			wide[resource], count = true, count-(spread[resource]-1)
		}
	}
	for _, resource := range resources {
		if running(everywhere(resource)) {
			add(resource)
		}
	}
	for _, resource := range resources {
		if count > limit && spread[resource] > 1 {
			add(resource)
		}
	}
	for _, resource := range slices.Backward(resources) {
		if more := count + spread[resource] - 1; wide[resource] && more <= limit*4/5 {
			delete(wide, resource)
			count = more
		}
	}
	for _, resource := range resources {
		if count > limit && spread[resource] > 1 && fares[resource] == fails {
			retried = append(retried, resource)
		}
	}
	return wide, retried
}

// firsts divides keys into the first ones, as many as there is room for, and the others.
func firsts(keys []Key, wanted map[Key]int, running func(scope) bool, room int) (first, others []Key) {
	if len(keys) <= room {
		return keys, nil
	}
	// Many works may wait for a definition, and no other event is about one.
	standing := func(key Key) int {
		switch {
		case key == Definitions():
			return 0
		case running(only(key)):
			return 1
		}
		return 2
	}
	slices.SortFunc(keys, func(a, b Key) int {
		return cmp.Or(cmp.Compare(standing(a), standing(b)), cmp.Compare(wanted[b], wanted[a]),
			cmp.Compare(a.String(), b.String()))
	})
	return keys[:room], keys[room:]
}
