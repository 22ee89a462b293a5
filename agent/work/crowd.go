package work

import (
	"sync"
	"time"

	workv1 "open-cluster-management.io/api/work/v1"
)

const (
	// smallWork is up to how many bytes of manifests a work never waits for others.
	smallWork = 64 << 10
	// maxCrowd is how many bytes of manifests the larger works that have a pass at the same time have together. Decoded,
	// they take up to 24 times that, so that ten works of an author would take more memory than the agent has.
	maxCrowd = 2 << 20
	// crowdDelay is how long a work waits before it tries again.
	crowdDelay = 100 * time.Millisecond
)

// crowd counts the bytes of the manifests of the works that have a pass. The zero value is ready to use.
type crowd struct {
	mutex sync.Mutex
	bytes int
}

// enter reports whether there is room for a pass over a work, which must call leave when it ends. A work that is larger
// than all the room has a pass alone.
func (c *crowd) enter(work *workv1.ManifestWork) (leave func(), ok bool) {
	size := bytesOf(work)
	if size <= smallWork {
		return func() {}, true
	}
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if c.bytes > 0 && c.bytes+size > maxCrowd {
		return nil, false
	}
	c.bytes += size
	return func() {
		c.mutex.Lock()
		defer c.mutex.Unlock()
		c.bytes -= size
	}, true
}

// bytesOf returns how many bytes the manifests of a work have; 0 for no work.
func bytesOf(work *workv1.ManifestWork) int {
	size := 0
	if work != nil {
		for i := range work.Spec.Workload.Manifests {
			size += len(work.Spec.Workload.Manifests[i].Raw)
		}
	}
	return size
}
