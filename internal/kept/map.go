package kept

import "sync"

// Map keeps a value for each key, for many goroutines at a time. It has no limit: its keys are objects that exist, and
// the user of the map forgets one that is gone. Its zero value is empty.
type Map[K comparable, V any] struct {
	mu     sync.Mutex
	values map[K]V
}

// Get returns the value of a key, and whether it has one.
func (m *Map[K, V]) Get(key K) (V, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	value, known := m.values[key]
	return value, known
}

// Put replaces the value of a key.
func (m *Map[K, V]) Put(key K, value V) {
	m.Change(key, func(V) (V, bool) { return value, true })
}

// Change replaces the value of a key by what change makes of it, of the zero value where there is none; false forgets
// the key. change must not use the map.
func (m *Map[K, V]) Change(key K, change func(V) (V, bool)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	value, keep := change(m.values[key])
	if !keep {
		delete(m.values, key)
		return
	}
	if m.values == nil {
		m.values = map[K]V{}
	}
	m.values[key] = value
}

// Forget forgets a key.
func (m *Map[K, V]) Forget(key K) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.values, key)
}

// Each calls see for each key with its value, in no order. see must not use the map.
func (m *Map[K, V]) Each(see func(K, V)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for key, value := range m.values {
		see(key, value)
	}
}

// Take returns the keys of such values, in no order, and forgets them. such must not use the map.
func (m *Map[K, V]) Take(such func(K, V) bool) []K {
	m.mu.Lock()
	defer m.mu.Unlock()
	var taken []K
	for key, value := range m.values {
		if such(key, value) {
			taken = append(taken, key)
			delete(m.values, key)
		}
	}
	return taken
}

// Len returns how many keys have a value.
func (m *Map[K, V]) Len() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.values)
}
