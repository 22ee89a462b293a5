package install

import (
	"hash/fnv"
	"slices"
	"strings"
	"time"

	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"

	"github.com/spokelet/spokelet/hub/fleet"
	"github.com/spokelet/spokelet/internal/reconcile"
)

// apartPeriod is how long a Placement must be unable to select a cluster before it does not matter any more: tools
// replace bindings, and move clusters between sets, in two writes.
const apartPeriod = 30 * time.Second

// mayBe reports whether a Placement may be one of those that dropped the cluster.
func (a absence) mayBe(id string) bool {
	return a.unseen || a.by == "" || strings.Contains(a.by, id) // All ids have one length, and no spaces.
}

// isForeign reports whether another scheduler decides a Placement.
func isForeign(placement *clusterv1beta1.Placement, own bool) bool {
	return placement != nil && (!own || fleet.IsScheduledByOthers(placement))
}

// reaches reports whether the sets that are bound to the namespace of a Placement have a cluster, or it is not known.
func (f fleetFacts) reaches(d *fleet.Decisions, c candidate) bool {
	members, known := f.inSets[d.Key.Namespace]
	return c.managed == nil || !known || members.Has(c.managed.Labels)
}

// reachOf identifies the Placements that reach a cluster.
func (f fleetFacts) reachOf(c candidate) uint64 {
	h := fnv.New64a()
	for _, d := range f.placements {
		if f.reaches(d, c) {
			_, _ = h.Write([]byte(d.Key.String() + " ")) // It returns no error.
		}
	}
	return h.Sum64()
}

// concerns reports whether it matters for the removal from a cluster what is uncertain about a Placement, and until
// when, zero for as long as nothing changes. It does not where the Placement cannot select the cluster: an add-on may
// list those of several users, and none must hold up what another one removes.
func (f fleetFacts) concerns(d *fleet.Decisions, c candidate) (concerns bool, until time.Time) {
	if d.Selects(c.cluster) || f.reaches(d, c) {
		return true, time.Time{}
	}
	if until = c.absence.apart.Add(apartPeriod); f.now.Before(until) {
		return true, until
	}
	was, seen := f.earlier[d.Key]
	switch {
	case !c.absence.mayBe(f.id(d)):
		return false, time.Time{}
	case isForeign(d.Placement, f.own), seen && was.foreign && d.Placement == nil, healthTaint(c.managed) != nil:
		return true, time.Time{} // One that is away may have been dropped for that, and not for its sets.
	case d.Placement == nil, !d.Placement.DeletionTimestamp.IsZero(), !seen, was.uid != d.Placement.UID:
		// Of a namespace that is created again, the bindings go and come before or after their Placements.
		return !seen || !was.known || was.members.Has(c.managed.Labels), time.Time{}
	}
	return false, time.Time{}
}

// id returns the idOf a listed Placement.
func (f fleetFacts) id(d *fleet.Decisions) string {
	if id, known := f.ids[d]; known {
		return id
	}
	return idOf(d.Key)
}

// concerned returns the Placements that matter for the removal from a cluster, and when they may be fewer; zero when an
// event tells.
func (f fleetFacts) concerned(c candidate) (placements []*fleet.Decisions, fewer time.Time) {
	for _, d := range f.placements {
		if concerns, until := f.concerns(d, c); concerns {
			placements, fewer = append(placements, d), reconcile.Earliest(fewer, until)
		}
	}
	return placements, fewer
}

// selects reports whether a placement selects a cluster.
func (f fleetFacts) selects(cluster string) bool {
	return slices.ContainsFunc(f.placements, func(d *fleet.Decisions) bool { return d.Selects(cluster) })
}
