package watch

import (
	"cmp"
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

// Key identifies one watch: a resource in a namespace, or in the whole cluster when that is empty.
type Key struct {
	Resource  schema.GroupVersionResource
	Namespace string
}

// String names the watch for a person.
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

// choose divides the wanted watches, each with its number of claims, into those within the limit and those beyond.
// Running watches go on, so that nothing flaps; of the others those with more claims come first.
func choose(wanted map[Key]int, running func(Key) bool, limit int) (chosen, beyond []Key) {
	keys := make([]Key, 0, len(wanted))
	for key := range wanted {
		keys = append(keys, key)
	}
	if len(keys) <= limit {
		return keys, nil
	}
	// Many works may wait for a definition, and no other event is about one.
	standing := func(key Key) int {
		switch {
		case key == Definitions():
			return 0
		case running(key):
			return 1
		}
		return 2
	}
	slices.SortFunc(keys, func(a, b Key) int {
		return cmp.Or(cmp.Compare(standing(a), standing(b)), cmp.Compare(wanted[b], wanted[a]),
			cmp.Compare(a.String(), b.String()))
	})
	return keys[:limit], keys[limit:]
}
