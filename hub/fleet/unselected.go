package fleet

import (
	"fmt"
	"maps"
	"time"

	"github.com/spokelet/spokelet/internal/names"
)

// Unselected returns why it is uncertain that a cluster which is not among the decisions is unselected, and the instant
// to check again, zero when an event starts the next pass. A nil error means that the cluster is unselected.
func (d *Decisions) Unselected(cluster string, now time.Time) (time.Time, error) {
	if d.Unfit != nil {
		return time.Time{}, d.Unfit
	}
	from := d.since
	if at := d.dropped[cluster]; at.After(from) {
		from = at
	}
	if until := from.Add(d.period); now.Before(until) {
		return until, d.moved
	}
	return time.Time{}, nil
}

// remember sets since when the clusters that are not among the decisions have not been there. A cluster that our own
// placement drops and selects all the time holds up only its own removal. Another controller may stop between two
// writes, so all must be still.
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
	d.since = now
	switch {
	case before == nil:
	case before.state == d.state:
		d.since, d.dropped = before.since, before.dropped
	case d.Own && before.scope == d.scope:
		d.since, d.dropped = before.since, map[string]time.Time{}
		for _, cluster := range before.Names {
			d.dropped[cluster] = now
		}
		for cluster, at := range before.dropped {
			if now.Before(at.Add(QuietPeriod)) {
				d.dropped[cluster] = at
			}
		}
		maps.DeleteFunc(d.dropped, func(cluster string, _ time.Time) bool { return d.Selects(cluster) })
	}
}
