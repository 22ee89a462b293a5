package kept

import "sync"

// Texts keeps what was made of texts, of a limited size together, so that texts that change for ever take no more
// memory than that. One text too many displaces others by chance, and not all: used in turn, each would displace the
// next one. Its zero value is empty, and it is used by many at a time.
type Texts[V any] struct {
	mu      sync.Mutex
	entries map[string]sized[V]
	size    int
}

// sized is a value with what it takes of the limit.
type sized[V any] struct {
	value V
	size  int
}

// Of returns what is kept for a text, or what produce makes of it, with its size in the unit of the limit.
func (k *Texts[V]) Of(text string, limit int, produce func() (V, int)) V {
	k.mu.Lock()
	known, ok := k.entries[text]
	k.mu.Unlock()
	if ok {
		return known.value
	}
	value, size := produce()
	k.mu.Lock()
	defer k.mu.Unlock()
	if _, twice := k.entries[text]; twice || size > limit {
		return value // Another one was faster, or there is never room for it.
	}
	for other, entry := range k.entries { // the order of a map is random
		if k.size+size <= limit {
			break
		}
		delete(k.entries, other)
		k.size -= entry.size
	}
	if k.entries == nil {
		k.entries = map[string]sized[V]{}
	}
	k.entries[text] = sized[V]{value, size}
	k.size += size
	return value
}

// Has reports whether something is kept for a text.
func (k *Texts[V]) Has(text string) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	_, kept := k.entries[text]
	return kept
}

// Size returns how much of the limit is taken.
func (k *Texts[V]) Size() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.size
}

// Len returns for how many texts something is kept.
func (k *Texts[V]) Len() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return len(k.entries)
}
