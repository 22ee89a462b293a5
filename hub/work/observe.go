package work

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// dueWorks is which works are to go. It is a pure cache of what a watch says.
type dueWorks struct {
	mu    sync.Mutex
	works map[types.NamespacedName]finished
}

// set takes in a work as it is now and reports whether it is to go.
func (w *dueWorks) set(key types.NamespacedName, now *finished) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if now == nil {
		delete(w.works, key)
		return false
	}
	w.works[key] = *now
	return true
}

// reset takes in all works that are to go.
func (w *dueWorks) reset(now map[types.NamespacedName]finished) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.works = now
}

// observe returns the work if it is to go.
func (w *dueWorks) observe(key types.NamespacedName) (finished, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	f, known := w.works[key]
	return f, known
}
