package work

import (
	"slices"
	"sync"

	workv1 "open-cluster-management.io/api/work/v1"
)

const (
	// smallWork is up to how many bytes of manifests a work never waits for others.
	smallWork = 64 << 10
	// maxCrowd is how many bytes of manifests the larger works that have a pass at the same time have together. Decoded,
	// they take up to 24 times that, so that ten works of an author would take more memory than the agent has.
	maxCrowd = 2 << 20
)

// crowd counts the bytes of the manifests of the works that have a pass. Larger works have their turns in the order in
// which they came; one that waits has no pass until then. The zero value is ready to use.
type crowd struct {
	mutex sync.Mutex
	// bytes are those of passes, and those kept for works whose turn it is.
	bytes   int
	kept    map[string]int
	waiting []place
}

// place is that of a work that waits.
type place struct {
	work  string
	bytes int
}

// enter reports whether a work of some bytes may have its pass, which must end with leave. One that may not is returned
// by leave when its turn comes. A work that is larger than all the room has a pass alone.
func (c *crowd) enter(work string, bytes int) bool {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if bytes <= smallWork {
		c.forget(work)
		return true
	}
	turn := c.kept[work] > 0
	c.bytes -= c.kept[work]
	delete(c.kept, work)
	at := slices.IndexFunc(c.waiting, func(p place) bool { return p.work == work })
	switch {
	case at >= 0:
		c.waiting[at].bytes = bytes
		return false
	case c.fits(bytes) && (turn || len(c.waiting) == 0):
		c.bytes += bytes
		return true
	case turn: // it grew meanwhile
		c.waiting = slices.Insert(c.waiting, 0, place{work, bytes})
	default:
		c.waiting = append(c.waiting, place{work, bytes})
	}
	return false
}

func (c *crowd) fits(bytes int) bool { return c.bytes == 0 || c.bytes+bytes <= maxCrowd }

// leave ends a pass of a work of so many bytes, 0 for one that did not enter, and returns the works whose turn it is.
func (c *crowd) leave(work string, bytes int) []string {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.forget(work)
	if bytes > smallWork {
		c.bytes -= bytes
	}
	return c.next()
}

// forget takes a work out of those that wait, and takes back the room that is kept for it.
func (c *crowd) forget(work string) {
	c.bytes -= c.kept[work]
	delete(c.kept, work)
	c.waiting = slices.DeleteFunc(c.waiting, func(p place) bool { return p.work == work })
}

// next keeps room for the first works that wait.
func (c *crowd) next() (turns []string) {
	for len(c.waiting) > 0 && c.fits(c.waiting[0].bytes) {
		first := c.waiting[0]
		c.waiting = c.waiting[1:]
		if c.kept == nil {
			c.kept = map[string]int{}
		}
		c.kept[first.work] = first.bytes
		c.bytes += first.bytes
		turns = append(turns, first.work)
	}
	return turns
}

// bytesOf returns how many bytes the manifests of a work have.
func bytesOf(work *workv1.ManifestWork) int {
	size := 0
	for i := range work.Spec.Workload.Manifests {
		size += len(work.Spec.Workload.Manifests[i].Raw)
	}
	return size
}
