package fleet

import (
	"fmt"
	"maps"
	"time"

	"github.com/spokelet/spokelet/internal/names"
)

// gatherPeriod is how long decisions of our own placement that change all the time hold up the removal from a cluster.
// Those of a change of many clusters come within it, so that they are counted together.
const gatherPeriod = time.Minute

// Unselected returns why it is uncertain that a cluster which is not among the decisions is unselected, and the instant
// to check again, zero when an event starts the next pass. A nil error means that the cluster is unselected.
func (d *Decisions) Unselected(cluster string, now time.Time) (time.Time, error) {
	if d.Unfit != nil {
		return time.Time{}, d.Unfit
	}
	until := d.since.Add(d.period)
	if d.Own {
		absent := d.scoped
		if at := d.dropped[cluster]; at.After(absent) {
			absent = at
		}
		if at := absent.Add(gatherPeriod); at.Before(until) {
			until = at
		}
	}
	if now.Before(until) {
		return until, d.moved
	}
	return time.Time{}, nil
}

// Leaving returns the clusters that another placement controller does not name any more, with the groups that they had,
// and may name again: it writes one PlacementDecision after the other, so a cluster that moves to the next one is in
// none for a moment. until is when they are unselected, unless decisions change again; zero without any. A Placement
// that does not exist has none, and one that is created again has those that its former self had.
func (d *Decisions) Leaving(now time.Time) (clusters map[string]Group, until time.Time) {
	if d.Placement == nil {
		return nil, time.Time{}
	}
	return d.leaving(now)
}

// Leaves returns why a cluster that another placement controller does not name may be named again, and until when;
// nil when it is not leaving.
func (d *Decisions) Leaves(cluster string, now time.Time) (until time.Time, why error) {
	leaving, until := d.Leaving(now)
	if _, leaves := leaving[cluster]; !leaves {
		return time.Time{}, nil
	}
	return until, d.moved
}

// leaving is Leaving, whether or not the Placement exists.
func (d *Decisions) leaving(now time.Time) (clusters map[string]Group, until time.Time) {
	if until = d.since.Add(d.period); len(d.left) == 0 || !now.Before(until) {
		return nil, time.Time{}
	}
	return d.left, until
}

// leave sets the clusters that left.
func (d *Decisions) leave(before *Decisions, now time.Time) {
	if before == nil || d.Own {
		return
	}
	d.left = map[string]Group{}
	leaving, _ := before.leaving(now)
	for _, groups := range []map[string]Group{leaving, before.Groups} {
		for cluster, group := range groups {
			if !d.Selects(cluster) {
				d.left[cluster] = group
			}
		}
	}
}

// remember sets since when the decisions are as they are. Another controller may stop between two writes, so all must
// be still. A cluster that our own placement drops and selects all the time holds up removals from others for a while
// only.
func (d *Decisions) remember(before *Decisions, now time.Time) {
	// Nobody sees a write before it happened: a later time of writing is a difference between two clocks, of which a small
	// one counts.
	if later := d.Written.Sub(now); later > 0 && later <= QuietPeriod {
		now = d.Written
	}
	if d.Own {
		p := d.Placement
		d.scope = fmt.Sprintf("%s@%d %s", p.UID, p.Generation, p.Annotations[names.AnnotationSetBindings])
	}
	d.since, d.scoped = now, now
	d.leave(before, now)
	switch {
	case before == nil:
	case before.state == d.state:
		d.since, d.scoped, d.dropped = before.since, before.scoped, before.dropped
	case d.Own && before.scope == d.scope:
		d.scoped, d.dropped = before.scoped, map[string]time.Time{}
		for _, cluster := range before.Names {
			d.dropped[cluster] = now
		}
		for cluster, at := range before.dropped {
			if now.Before(at.Add(gatherPeriod)) {
				d.dropped[cluster] = at
			}
		}
		maps.DeleteFunc(d.dropped, func(cluster string, _ time.Time) bool { return d.Selects(cluster) })
	}
}
