package rollout

import (
	"cmp"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/spokelet/spokelet/hub/rollout/planner"
	"github.com/spokelet/spokelet/internal/reconcile"
)

// way is what is remembered of a cluster until it has a target: its deadline would begin again with each add-on that a
// user deletes, and later groups would wait for ever. After a restart it does. That it failed is in its status, too.
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
	// awaits is since when it awaited at first what its own spec names; zero for never. knew reports whether that became
	// known, which dates it once.
	awaits time.Time
	knew   bool
	// failed reports whether it failed or timed out in the last plan: nothing that it awaits since then excuses that. See
	// excused.
	failed bool
	// given is what it was given last, and had reports whether it was given the target itself, without configurations of
	// its own in the place of some: only what it had it gets again, whatever failed.
	given string
	had   bool
	// broke is set where it failed, and did not time out: then it has failed until it is complete.
	broke bool
	// undone is set where it failed and returned to what it had: it does not get the target again.
	undone bool
	// fell is set where it failed because its agent was not available: then it has failed until that is available.
	fell bool
	// paused is since when it waits to be admitted, so that no time counts.
	paused time.Time
}

// goesOn returns the way of a cluster to a target with an add-on, which is "" where there is none, or one that goes.
func (w way) goesOn(target string, addOn types.UID, now time.Time) way {
	if w.target != target {
		return way{target: target, addOn: addOn}
	}
	if !w.paused.IsZero() && now.After(w.paused) {
		for _, at := range []*time.Time{&w.since, &w.awaits, &w.due} {
			if !at.IsZero() {
				*at = at.Add(now.Sub(w.paused))
			}
		}
	}
	w.paused = time.Time{}
	for _, at := range []*time.Time{&w.since, &w.awaits, &w.went} {
		if at.After(now) {
			*at = now // The clock was ahead.
		}
	}
	if w.addOn != "" && w.addOn != addOn {
		w.again, w.fell = true, false // It may report nothing.
	}
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
// offered is what the placement gives to the cluster now.
func (w way) follow(
	c *planner.Cluster, offered string, soak time.Duration, now time.Time,
) (next way, onWay bool) {
	if c.State != planner.Pending && c.State != planner.Awaited {
		w.given, w.had = offered, w.had || offered == w.target
	}
	late, reports := w.again && !w.since.IsZero(), c.State == planner.Failed
	if most := now.Add(max(soak, settled)); w.due.After(most) {
		w.due = most // The clock was ahead.
	}
	switch c.State {
	case planner.Pending:
		had := w.given == offered || w.had && offered == w.target
		switch {
		case w.failed && (had || !c.AwaitsOwn.IsZero()):
			if c.HasFailed = true; !had {
				c.Held = cmp.Or(c.Held, "failed, and awaits what its own spec names") // That excuses it no more.
			}
			return w, true
		case c.AwaitsOwn.IsZero():
		case w.awaits.IsZero() && !w.since.IsZero():
			w.awaits = now // It was on its way, and has a whole deadline when it goes on.
		}
		w.paused = now
		return w, late || !w.awaits.IsZero()
	case planner.Awaited:
		if c.Again, c.HasFailed = late, w.failed; !late {
			return w, w.failed
		}
		c.Since = w.went
	case planner.Succeeded:
		if soak == 0 || c.Since.IsZero() || !now.Before(c.Since.Add(soak)) {
			return way{}, false
		}
		w.due = reconcile.Earliest(w.due, c.Due, c.Since.Add(max(soak, settled)))
	case planner.InFlight, planner.Failed:
		w.due = reconcile.Earliest(w.due, c.Due)
		w = w.fly(c, late, now)
	}
	if c.State != planner.InFlight && c.State != planner.Awaited { // The plan says of these who is late.
		w.failed = c.State == planner.Failed && !w.excused()
		w.broke = w.failed && (w.broke || reports)
		w.fell = w.broke && (w.fell || c.Fell)
	}
	switch {
	case w.knew && w.due.IsZero():
		c.Since = w.since
	case late && !w.due.IsZero():
		c.Due = w.due
	case late, w.failed: // Who timed out is not given more time by turns of its own configurations.
		c.Since = reconcile.Earliest(c.Since, w.since)
	}
	if w.since.IsZero() {
		w.since = now
	}
	return w, true
}

// excused reports whether the cluster awaits, for the first time, what its own spec names, and did so before it failed.
func (w way) excused() bool { return !w.awaits.IsZero() && !w.knew }

// fly goes on with a cluster that was admitted, and tells it since when it awaits what its own spec names. What that is
// excuses no failure of before.
func (w way) fly(c *planner.Cluster, late bool, now time.Time) way {
	awaits := !c.AwaitsOwn.IsZero()
	switch {
	case w.broke, awaits && w.failed:
		c.State = planner.Failed
	case awaits && w.awaits.IsZero():
		w.awaits = now
	case !awaits && w.excused():
		w.since, w.knew = now, true
	}
	if !late && !w.knew {
		w.since = reconcile.Earliest(w.since, c.Since)
	}
	if awaits {
		c.AwaitsOwn = w.awaits
	}
	return w
}
