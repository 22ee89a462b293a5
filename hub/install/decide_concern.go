package install

import (
	"fmt"
	"slices"
	"strings"
	"time"

	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"

	"github.com/spokelet/spokelet/hub/fleet"
	"github.com/spokelet/spokelet/internal/clustersets"
	"github.com/spokelet/spokelet/internal/reconcile"
)

// earlier is what is known about a Placement that is gone or going, from when it was there.
type earlier struct {
	decisions *fleet.Decisions
	// members are the clusters that were bound to its namespace, and bound reports whether that is known.
	members clustersets.Members
	bound   bool
}

// reaches reports whether the sets that are bound to the namespace of a Placement have a cluster, or it is not known.
func (f fleetFacts) reaches(d *fleet.Decisions, c candidate) bool {
	members, known := f.inSets[d.Key.Namespace]
	return c.managed == nil || !known || members.Has(c.managed.Labels)
}

// concerns reports whether it matters for the removal from a cluster what is uncertain about a Placement, and until
// when, zero for as long as nothing changes. It does not where the Placement cannot select the cluster: an add-on may
// list those of several users, and none must hold up what another one removes.
func (f fleetFacts) concerns(d *fleet.Decisions, c candidate) (concerns bool, until time.Time) {
	if d.Selects(c.cluster) || f.reaches(d, c) {
		return true, time.Time{}
	}
	was, known := f.earlier[d.Key]
	switch {
	case d.Placement == nil, !d.Placement.DeletionTimestamp.IsZero():
		// Of a namespace that is deleted, the bindings go before or after their Placements.
		return !known || !was.bound || was.decisions.Selects(c.cluster) || was.members.Has(c.managed.Labels) ||
			slices.Contains(strings.Fields(c.absence.by), d.Key.String()), time.Time{}
	case !f.own, d.Placement.Annotations[clusterv1beta1.PlacementDisableAnnotation] == "true":
		// Other schedulers may ask for no bindings, and write one PlacementDecision after the other.
		if d.DoubtedSince.IsZero() {
			return true, time.Time{}
		}
		until = d.DoubtedSince.Add(fleet.FailoverPeriod)
		return f.now.Before(until), until
	}
	return false, time.Time{}
}

// settled returns why a cluster may be among the decisions of a Placement again that does not concern it any more, and
// until when: decisions must be still for as long as those of others, for a minute after the cluster was dropped at most.
// Who takes back what took the cluster out of a set has that time.
func (f fleetFacts) settled(c candidate) (until time.Time, why error) {
	for _, d := range f.placements {
		dropped := c.absence.unseen || slices.Contains(strings.Fields(c.absence.by), d.Key.String())
		if concerns, _ := f.concerns(d, c); concerns || !dropped {
			continue
		}
		at := c.absence.noted.Add(fleet.QuietPeriod)
		if d.Unfit == nil {
			if still, err := d.Unselected(c.cluster, f.now); err != nil && still.After(at) {
				at = reconcile.Earliest(still, c.absence.noted.Add(decidedAtMost))
			}
		}
		if f.now.Before(at) {
			until, why = reconcile.Earliest(until, at), fmt.Errorf("placement %s dropped cluster %s a moment ago", d.Key, c.cluster)
		}
	}
	return until, why
}

// decidedAtMost is how long decisions that change all the time hold up the removal from a cluster that the Placement
// cannot select again.
const decidedAtMost = time.Minute

// concerned returns the Placements that matter for the removal from a cluster, and when that may be fewer; zero when an
// event tells.
func (f fleetFacts) concerned(c candidate) (placements []*fleet.Decisions, until time.Time) {
	for _, d := range f.placements {
		concerns, at := f.concerns(d, c)
		if concerns {
			placements = append(placements, d)
			until = reconcile.Earliest(until, at)
		}
	}
	return placements, until
}
