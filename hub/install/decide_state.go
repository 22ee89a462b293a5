package install

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"hash/fnv"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"

	"github.com/spokelet/spokelet/hub/fleet"
	"github.com/spokelet/spokelet/internal/confirmation"
	"github.com/spokelet/spokelet/internal/reconcile"
)

// parseState reads the annotation; what is not valid counts as absent. An intent of another format is unknown, so that
// an upgrade is not an edit.
func parseState(raw string) removalState {
	var s removalState
	if json.Unmarshal([]byte(raw), &s) != nil {
		return removalState{}
	}
	maps.DeleteFunc(s.Intents, func(_, intent string) bool { return !strings.HasPrefix(intent, intentFormat) })
	return s
}

// encode returns the value of the annotation; empty when there is nothing to know.
func (s removalState) encode() string {
	raw, err := json.Marshal(s)
	if err != nil || string(raw) == "{}" {
		return ""
	}
	return string(raw)
}

// digestSize is how many bytes stand for a cluster in a digest: few enough for an annotation with thousands of
// clusters, and enough that no other cluster has the same.
const digestSize = 6

// digest returns a short form of a set of clusters in which each cluster can be found.
func digest(addon types.UID, clusters []string) string {
	var raw []byte
	for _, cluster := range clusters {
		raw = append(raw, digestOf(addon, cluster)...)
	}
	return base64.RawStdEncoding.EncodeToString(raw)
}

// digestOf returns what stands for a cluster in a digest.
func digestOf(addon types.UID, cluster string) string {
	sum := sha256.Sum256([]byte(string(addon) + "/" + cluster))
	return string(sum[:digestSize])
}

// digested returns the members of a digest.
func digested(encoded string) sets.Set[string] {
	members := sets.New[string]()
	raw, err := base64.RawStdEncoding.DecodeString(encoded)
	if err != nil {
		return members
	}
	for part := range slices.Chunk(raw, digestSize) {
		members.Insert(string(part))
	}
	return members
}

// nameOf returns the name of a set of clusters, which are in order, for people to confirm it by.
func nameOf(addon types.UID, clusters []string) string {
	return confirmation.Name(string(addon), clusters)
}

// minuteOf is the key of an instant in Recent.
func minuteOf(at time.Time) string { return at.UTC().Truncate(time.Minute).Format(time.RFC3339) }

// recentOf returns from how many clusters an add-on was removed in each minute after an instant: those that this
// process knows of, and those that an earlier one recorded.
func recentOf(removed map[string]time.Time, earlier map[string]int, since time.Time) map[string]int {
	recent := map[string]int{}
	for minute, n := range earlier {
		if at, err := time.Parse(time.RFC3339, minute); err == nil && at.After(since) && n > 0 {
			recent[minute] += n
		}
	}
	for _, at := range removed {
		recent[minuteOf(at)]++
	}
	return recent
}

func sum(counts map[string]int) int {
	total := 0
	for _, n := range counts {
		total += n
	}
	return total
}

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
