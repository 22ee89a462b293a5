package work

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// dueWorks are the works with a time to live that are complete. It is a cache of what the watch delivered.
type dueWorks struct {
	mu    sync.Mutex
	works map[types.NamespacedName]finished
}

// set records the present state of a work and reports whether it is to be deleted.
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

// reset replaces all works.
func (w *dueWorks) reset(now map[types.NamespacedName]finished) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.works = now
}

// observe returns a work if it is to be deleted.
func (w *dueWorks) observe(key types.NamespacedName) (finished, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	f, known := w.works[key]
	return f, known
}
