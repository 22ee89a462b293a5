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
	// since is since when the cluster is on its way, and went since when it has no add-on.
	since, went time.Time
	// due is when it should have soaked at first; zero while it was not complete.
	due time.Time
	// awaits reports whether it awaited what its own spec names, and knew whether that became known, which dates it once.
	awaits, knew bool
	// paused is since when it is not known whether the cluster is selected, so that nothing is admitted.
	paused time.Time
}

// goesOn returns the way of a cluster to a target with an add-on, which is "" where there is none, or one that goes.
func (w way) goesOn(target string, addOn types.UID, now time.Time) way {
	if w.target != target {
		return way{target: target, addOn: addOn}
	}
	if !w.paused.IsZero() && !w.since.IsZero() {
		w.since = w.since.Add(now.Sub(w.paused))
	}
	w.paused = time.Time{}
	if w.since.After(now) {
		w.since = now // The clock was ahead.
	}
	w.again = w.again || (w.addOn != "" && w.addOn != addOn)
	switch {
	case addOn != "":
		w.addOn, w.went = addOn, time.Time{}
	case w.went.IsZero():
		w.went = now
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
		c.Since = w.went
	case planner.Succeeded:
		if soak == 0 || c.Since.IsZero() || !now.Before(c.Since.Add(soak)) {
			return way{}, false
		}
		w.due = reconcile.Earliest(w.due, c.Due, c.Since.Add(max(soak, settled)))
	case planner.InFlight, planner.Failed:
		w.due = reconcile.Earliest(w.due, c.Due)
		switch {
		case w.awaits && !c.AwaitsOwn && !w.knew:
			w.since, w.knew = now, true
		case !late && !w.knew:
			w.since = reconcile.Earliest(w.since, c.Since)
		}
		w.awaits = w.awaits || c.AwaitsOwn
	}
	switch {
	case w.knew:
		c.Since = w.since
	case late && !w.due.IsZero():
		c.Due = w.due
	case late:
		c.Since = reconcile.Earliest(c.Since, w.since)
	}
	if w.since.IsZero() {
		w.since = now
	}
	return w, true
}
