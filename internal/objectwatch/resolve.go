package objectwatch

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/utils/clock"

	"github.com/spokelet/spokelet/internal/pause"
)

const (
	// firstLook and lastLook bound the pause before a kind that is not served is looked up again.
	firstLook, lastLook = time.Second, 30 * time.Second
	// lookGap is the least time between two discoveries.
	lookGap = 250 * time.Millisecond
	// discoveryTimeout bounds one request of discovery.
	discoveryTimeout = 10 * time.Second
)

// Discovery is the part of a discovery client that a Watcher needs.
type Discovery interface {
	ServerGroupsAndResources() ([]*metav1.APIGroup, []*metav1.APIResourceList, error)
}

// kindEntry is a resource with the references to its objects.
type kindEntry struct {
	kind
	refs map[Ref]struct{}
	// forbidden are the references whose watches are refused, and since when.
	forbidden map[Ref]time.Time
	// doubted is set when a request showed that the resource is not served as it was.
	doubted bool
}

// resolve looks kinds up until ctx ends: new ones at once, and those that are not served again and again.
func (w *Watcher) resolve(ctx context.Context) {
	looks := pause.Growing{First: firstLook, Last: lastLook}
	next := firstLook
	for ctx.Err() == nil {
		if !w.unresolved() {
			next = firstLook
			select {
			case <-ctx.Done():
			case <-w.look:
			}
			continue
		}
		groups, lists, err := w.discovery.ServerGroupsAndResources()
		d := discovered{groups: groups, lists: lists, err: err}
		if failed, partly := discovery.GroupDiscoveryFailedErrorGroups(err); partly {
			d.failed, d.err = failed, nil
		}
		w.resolved(d)
		wait(ctx, w.clock, lookGap, nil)
		if wait(ctx, w.clock, next-lookGap, w.look) {
			next = firstLook
		} else {
			next = looks.Next(next)
		}
	}
}

// unresolved reports whether there is a kind to look up.
func (w *Watcher) unresolved() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, k := range w.kinds {
		if k.doubted || k.phase != kindServed {
			return true
		}
	}
	return false
}

// resolved records an answer of discovery.
func (w *Watcher) resolved(d discovered) {
	var changed []Ref
	w.mu.Lock()
	for resource, k := range w.kinds {
		if !k.doubted && k.phase == kindServed {
			continue
		}
		before := k.kind
		k.kind = d.find(resource, before)
		k.doubted = k.doubted && k.err != nil
		for ref := range k.refs {
			o := w.entries[ref].observed
			if !stateOf(ref, before, o, w.limit).same(stateOf(ref, k.kind, o, w.limit)) {
				changed = append(changed, ref)
			}
			if before.resource != k.resource || before.namespaced != k.namespaced {
				w.settleLater(ref)
			}
		}
	}
	w.mu.Unlock()
	w.report(changed...)
}

// doubt looks a kind up again, because a request showed that it is not served as it was.
func (w *Watcher) doubt(resource schema.GroupResource) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if k := w.kinds[resource]; k != nil && !k.doubted {
		k.doubted = true
		w.look.Fire()
	}
}

// wait waits for a time, for a signal or the end of ctx, and reports whether there was a signal.
func wait(ctx context.Context, c clock.Clock, d time.Duration, signal <-chan struct{}) bool {
	timer := c.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-signal:
		return true
	case <-timer.C():
	}
	return false
}
