package rollout

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/spokelet/spokelet/hub/rollout/planner"
	"github.com/spokelet/spokelet/internal/reconcile"
)

// way is what is remembered of a cluster until it has a target: its deadline would begin again with each add-on that a
// user deletes, and later groups would wait for ever. After a restart it does.
type way struct {
	// target identifies what the placement gives to all clusters without configurations of their own.
	target string
	// addOn is the ManagedClusterAddOn that was seen last, and again reports whether there was another one before.
	addOn types.UID
	again bool
	// since is since when the cluster is on its way.
	since time.Time
}

// goesOn returns the way of a cluster to a target with an add-on, which is "" where there is none, or one that goes.
func (w way) goesOn(target string, addOn types.UID) way {
	if w.target != target {
		return way{target: target, addOn: addOn}
	}
	w.again = w.again || (w.addOn != "" && w.addOn != addOn)
	if addOn != "" {
		w.addOn = addOn
	}
	return w
}

// follow gives a cluster the time that it takes in all where its add-on was created again, and returns its way from
// here; false when it has arrived, or has not set out.
func (w way) follow(c *planner.Cluster, soak time.Duration, now time.Time) (next way, onWay bool) {
	late := w.again && !w.since.IsZero()
	switch c.State {
	case planner.Pending:
		return w, late
	case planner.Awaited:
		if c.Again = late; !late {
			return w, false
		}
		c.Since = reconcile.Earliest(c.Since, w.since)
	case planner.Succeeded:
		if soak == 0 || c.Since.IsZero() || !now.Before(c.Since.Add(soak)) {
			return way{}, false
		}
		if late {
			c.Due = reconcile.Earliest(c.Due, w.since.Add(max(soak, settled)))
		}
	case planner.InFlight, planner.Failed:
		if late {
			c.Since = reconcile.Earliest(c.Since, w.since)
		} else if !c.Since.IsZero() {
			w.since = c.Since
		}
	}
	if w.since.IsZero() {
		w.since = now
	}
	return w, true
}
