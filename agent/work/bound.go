package work

import (
	"cmp"
	"slices"
	"time"
)

const (
	// DefaultMaxWatches is how many watches of objects there are at most. One costs the agent some 30 KiB and the API
	// server about the same.
	DefaultMaxWatches = 500
	// DefaultRelist is how long a watch is trusted before it lists anew.
	DefaultRelist = 6 * time.Hour
	// relistSpread spreads these lists, so that they do not come together.
	relistSpread = 0.5
	// beyondBound is why a watch has not been started.
	beyondBound = "more watches are wanted than the agent may have"
)

// choose divides the wanted watches, each with the number of claims on it, into those to have and those beyond the
// limit. What runs goes on, so that nothing flaps; of the others those with more claims come first.
func choose(wanted map[watchKey]int, runs func(watchKey) bool, limit int) (chosen, beyond []watchKey) {
	keys := make([]watchKey, 0, len(wanted))
	for key := range wanted {
		keys = append(keys, key)
	}
	if len(keys) <= limit {
		return keys, nil
	}
	// Many works may wait for a definition, and nothing else tells of one.
	standing := func(key watchKey) int {
		switch {
		case key == definitionsKey():
			return 0
		case runs(key):
			return 1
		}
		return 2
	}
	slices.SortFunc(keys, func(a, b watchKey) int {
		return cmp.Or(cmp.Compare(standing(a), standing(b)), cmp.Compare(wanted[b], wanted[a]),
			cmp.Compare(a.String(), b.String()))
	})
	return keys[:limit], keys[limit:]
}
