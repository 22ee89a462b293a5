package work

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

const (
	// staleDelay is how long a pass waits for a cache that has not seen the last write yet.
	staleDelay = 20 * time.Millisecond
	// staleLimit is how long it waits at most; after that the cache is believed and the write guards decide.
	staleLimit = 2 * time.Second
)

// written is the last write of this process to one object.
type written struct {
	uid     types.UID
	version string
	at      time.Time
	// deleting tells that the object was told to go, gone that it went.
	deleting, gone bool
}

// lag reports whether a copy from a cache is older than the last write. uid is empty when the cache has none.
func (w written) lag(uid types.UID, version string, deleting bool, now time.Time) bool {
	if w.at.IsZero() || w.gone || now.Sub(w.at) > staleLimit {
		return false
	}
	if uid != w.uid {
		return uid == ""
	}
	return olderVersion(version, w.version) || (w.deleting && !deleting)
}

// left reports whether the object went by the last write although a cache still has it.
func (w written) left(uid types.UID, now time.Time) bool {
	return w.gone && w.uid == uid && now.Sub(w.at) <= staleLimit
}

// recall is what the process remembers of one holder besides its objects. Like the ledger it is a pure cache.
type recall struct {
	work, applied written
	// fresh is the AppliedManifestWork that was made for a work which never had a status. The API server may delete a work
	// in the moment in which it gets its finalizer; what was made for it then goes without a grace.
	fresh types.UID
	// uid and generation say of which work manifests is the reading.
	uid        types.UID
	generation int64
	manifests  []manifest
	// blocked is how many objects were told to go and are still there after a while.
	blocked int
	// blockers is what was last told of them.
	blockers string
	// silent is until when the hub is not asked to take a status, because it did not answer.
	silent time.Time
	// unserved is since when kinds are missing, definitions how many definitions were seen by then.
	unserved    time.Time
	definitions int
}

// memory has the recall of each holder.
type memory struct {
	mu      sync.Mutex
	holders map[holder]recall
}

// newMemory returns an empty memory.
func newMemory() *memory { return &memory{holders: map[holder]recall{}} }

// of returns a copy of what is remembered.
func (m *memory) of(h holder) recall {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.holders[h]
}

// change changes what is remembered.
func (m *memory) change(h holder, change func(*recall)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	known := m.holders[h]
	change(&known)
	m.holders[h] = known
}

// forget drops what is remembered.
func (m *memory) forget(h holder) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.holders, h)
}
