package install

import (
	"maps"
	"math"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"github.com/spokelet/spokelet/hub/fleet"
	"github.com/spokelet/spokelet/internal/clustersets"
)

// memory is what this process derives from its caches, so that a pass costs as much as what changed. After a restart it
// is derived again; what would be lost then is in annotations of the ClusterManagementAddOn.
type memory struct {
	mu sync.Mutex
	// notes counts what was noted.
	notes uint64
	// fleets are the clusters of each add-on that may be unselected.
	fleets map[string]*remembered
	// placements are the clusters that Placements could select when they were there last.
	placements map[types.NamespacedName]earlier
	// available are the clusters that are available, with the instant since when, as far as this process saw it.
	available map[string]time.Time
}

// remembered holds what is remembered about one add-on.
type remembered struct {
	// found reports whether all add-ons were looked at once. Before, nothing is noted.
	found bool
	// unselected are the clusters that have the add-on although no placement may select them.
	unselected map[string]absence
	// former are the Placements that dropped clusters which others select, and when a pass saw that.
	former map[string]former
	// went are the clusters from which the add-on went, and to which it did not come back.
	went map[string]struct{}
	// intents are the last that were seen of what people decide about placements, and when they were first seen.
	intents map[string]intent
	// removed is when the add-on was removed from clusters without an edit that explains it.
	removed map[string]time.Time
	// earlier holds what an earlier process recorded of that, by minute.
	earlier map[string]int
	// brought reports whether an add-on of the name was seen that others brought along.
	brought bool
	// reported are the reasons in the last Event about add-ons that are kept.
	reported string
}

// see remembers since when a cluster is available, and no taint says otherwise: since the write that brought it back,
// by the clock of the API server like the decisions that it is compared with, or, when it was available at first
// sight, since it reported so, at most since then. The clock of its agent may be hours off. Of a taint that was taken
// away, the API server notes no time: that is now. The former is nil at first sight, and the present one when the
// cluster is gone.
func (m *memory) see(was, is *clusterv1.ManagedCluster, now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case is == nil:
		delete(m.available, was.Name)
		for _, f := range m.fleets {
			delete(f.went, was.Name)
		}
	case !well(is):
		delete(m.available, is.Name)
	case was == nil || !well(was) || !availableSince(was).Equal(availableSince(is)):
		if was != nil && well(was) {
			m.missed(is.Name, now)
		}
		if m.available == nil {
			m.available = map[string]time.Time{}
		}
		since := now
		if written := fleet.LastWritten(is); len(is.ManagedFields) > 0 && (!wasTainted(was) || written.After(now)) {
			since = written
		}
		if at := availableSince(is); was == nil && at.Before(since) {
			since = at
		}
		m.available[is.Name] = since
	}
}

// wasTainted reports whether a cluster had a taint that said that it is not available.
func wasTainted(was *clusterv1.ManagedCluster) bool {
	return was != nil && healthTaint(was) != nil
}

// missed notes that a cluster was away while nobody watched, and is back: decisions may have dropped it because of
// that. Of one that is unselected for long, only what is watched counts: its agent may write at any time since when it
// is available.
func (m *memory) missed(cluster string, now time.Time) {
	for _, f := range m.fleets {
		if a, noted := f.unselected[cluster]; noted && now.Before(a.noted.Add(latePeriod)) {
			m.notes++ // A pass that looks at it now does not write back what it read.
			a.number = m.notes
			a.away, a.dropped, a.back = true, false, now
			f.unselected[cluster] = a
		}
	}
}

// availableSince returns since when a cluster is available, by the clock of the hub as far as this process saw it.
func (m *memory) availableSince(c *clusterv1.ManagedCluster) time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	if c == nil {
		return time.Time{}
	}
	if at, seen := m.available[c.Name]; seen {
		return at
	}
	return availableSince(c)
}

func (m *memory) fleet(addon string) *remembered {
	if m.fleets == nil {
		m.fleets = map[string]*remembered{}
	}
	f := m.fleets[addon]
	if f == nil {
		f = &remembered{unselected: map[string]absence{}, removed: map[string]time.Time{}}
		m.fleets[addon] = f
	}
	return f
}

// begin begins a pass: it reports whether all add-ons of a name must be looked at, and returns the number of the last
// note. It comes before the pass reads anything, so that it may forget what was noted up to that number, and nothing
// that is noted from here on is lost.
func (m *memory) begin(addon string) (first bool, last uint64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	f := m.fleet(addon)
	first = !f.found
	f.found = true
	return first, m.notes
}

// recall takes over what an earlier process recorded of removals.
func (m *memory) recall(addon string, earlier map[string]int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if f := m.fleet(addon); f.earlier == nil {
		f.earlier = map[string]int{}
		maps.Copy(f.earlier, earlier)
	}
}

// restart makes the next pass look at all add-ons of a name again.
func (m *memory) restart(addon string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if f := m.fleets[addon]; f != nil {
		f.found = false
	}
}

// drop remembers that a Placement dropped the cluster of an add-on that may exist, and that no placement selects any
// more. available reports whether the cluster was available when that was decided.
func (m *memory) drop(addon, placement types.NamespacedName, available bool, now time.Time) {
	m.change(addon, now, func(a *absence, known bool) {
		if was := m.fleet(addon.Name).former[addon.Namespace]; !known && now.Before(was.at.Add(removalPeriod)) {
			a.by = was.by
		}
		if now.Before(a.noted.Add(fleet.QuietPeriod)) {
			a.unseen = false // A pass saw it before this was told.
		}
		a.by = addTo(a.by, placement)
		a.dropped = a.dropped || (available && !a.away)
	})
}

// note remembers that a cluster may have an add-on that no placement selects, for whatever reason.
func (m *memory) note(addon types.NamespacedName, now time.Time) {
	m.change(addon, now, func(a *absence, known bool) { a.unseen = a.unseen || !known })
}

// follow notes a cluster as note does, and whether all add-ons are gone from it that brought the add-on along: by the
// last of them that came or is gone.
func (m *memory) follow(addon types.NamespacedName, follows bool, now time.Time) {
	m.change(addon, now, func(a *absence, known bool) { a.unseen, a.follows = a.unseen || !known, follows })
}

// change notes what is known about a cluster. known reports whether anything was.
func (m *memory) change(addon types.NamespacedName, now time.Time, change func(a *absence, known bool)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	f := m.fleet(addon.Name)
	if !f.found {
		return
	}
	a, known := f.unselected[addon.Namespace]
	if !known {
		a.noted = now
	}
	m.notes++
	a.number = m.notes
	change(&a, known)
	f.unselected[addon.Namespace] = a
}

// unselected returns a copy of the clusters that were noted for an add-on.
func (m *memory) unselected(addon string) map[string]absence {
	m.mu.Lock()
	defer m.mu.Unlock()
	return maps.Clone(m.fleet(addon).unselected)
}

// learn replaces what is known about a cluster, unless it was noted again meanwhile.
func (m *memory) learn(addon types.NamespacedName, a absence) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if f := m.fleet(addon.Name); f.unselected[addon.Namespace].number == a.number {
		f.unselected[addon.Namespace] = a
	}
}

// forget forgets clusters of an add-on that were noted up to a number.
func (m *memory) forget(addon string, last uint64, clusters ...string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	f := m.fleets[addon]
	for _, cluster := range clusters {
		if f != nil && f.unselected[cluster].number <= last {
			delete(f.unselected, cluster)
		}
	}
}

// former are Placements that dropped a cluster, as in absence.by.
type former struct {
	by string
	at time.Time
}

// chosen forgets a cluster that a Placement selects, as forget does. For a while, those that dropped it are known:
// a user who selects it for a moment does not explain what they did.
func (m *memory) chosen(addon string, last uint64, cluster string, now time.Time) {
	m.mu.Lock()
	f := m.fleet(addon)
	maps.DeleteFunc(f.former, func(_ string, was former) bool { return !now.Before(was.at.Add(removalPeriod)) })
	if a := f.unselected[cluster]; a.by != "" && a.number <= last {
		if f.former == nil {
			f.former = map[string]former{}
		}
		f.former[cluster] = former{a.by, now}
	}
	m.mu.Unlock()
	m.forget(addon, last, cluster)
}

// gone forgets a cluster that does not have the add-on any more, and remembers that it went.
func (m *memory) gone(addon, cluster string) {
	m.forget(addon, math.MaxUint64, cluster)
	m.mu.Lock()
	defer m.mu.Unlock()
	f := m.fleet(addon)
	if f.went == nil {
		f.went = map[string]struct{}{}
	}
	f.went[cluster] = struct{}{}
}

// went reports whether this process saw the add-on of a cluster go.
func (m *memory) went(addon, cluster string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	_, went := m.fleet(addon).went[cluster]
	return went
}

// came forgets that the add-on of a cluster went.
func (m *memory) came(addon, cluster string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.fleet(addon).went, cluster)
}

// forgetAddOn forgets everything about an add-on.
func (m *memory) forgetAddOn(addon string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.fleets, addon)
}

// waiting returns the add-ons for which a cluster was noted, in order.
func (m *memory) waiting(cluster string) []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	var addons []string
	for addon, f := range m.fleets {
		if _, noted := f.unselected[cluster]; noted {
			addons = append(addons, addon)
		}
	}
	slices.Sort(addons)
	return addons
}

// bring remembers that others brought the add-on along to a cluster, and reports whether that is new.
func (m *memory) bring(addon string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	f := m.fleet(addon)
	known := f.brought
	f.brought = true
	return !known
}

// brought reports whether this process saw that.
func (m *memory) brought(addon string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	f := m.fleets[addon]
	return f != nil && f.brought
}

// leaving returns the add-ons of which a cluster may be unselected, in order.
func (m *memory) leaving() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	var addons []string
	for addon, f := range m.fleets {
		if len(f.unselected) > 0 {
			addons = append(addons, addon)
		}
	}
	slices.Sort(addons)
	return addons
}

// pending reports whether a pass over an add-on has something to look at.
func (m *memory) pending(addon string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	f := m.fleets[addon]
	return f == nil || !f.found || len(f.unselected) > 0
}

// intentsOf returns since when this process knows each intent of an add-on.
func (m *memory) intentsOf(addon string, intents map[string]string, now time.Time) map[string]intent {
	m.mu.Lock()
	defer m.mu.Unlock()
	f, known := m.fleet(addon), make(map[string]intent, len(intents))
	for key, is := range intents {
		if known[key] = f.intents[key]; known[key].is != is {
			known[key] = intent{is, now}
		}
	}
	f.intents = known
	return maps.Clone(known)
}

// placement returns what was known of a Placement when its decisions meant something last.
func (m *memory) placement(
	d *fleet.Decisions, own bool, members clustersets.Members, known bool,
) (was earlier, seen bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if d.Unfit == nil {
		if m.placements == nil {
			m.placements = map[types.NamespacedName]earlier{}
		}
		m.placements[d.Key] = earlier{d.Placement.UID, members, known, isForeign(d.Placement, own)}
	}
	was, seen = m.placements[d.Key]
	return was, seen
}

// forgetPlacement forgets a Placement that no add-on lists.
func (m *memory) forgetPlacement(key types.NamespacedName) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.placements, key)
}

// recent returns from how many clusters an add-on was removed since an instant without an edit that explains it, by
// minute.
func (m *memory) recent(addon string, since time.Time) map[string]int {
	m.mu.Lock()
	defer m.mu.Unlock()
	f := m.fleet(addon)
	maps.DeleteFunc(f.removed, func(_ string, at time.Time) bool { return !at.After(since) })
	return recentOf(f.removed, f.earlier, since)
}

// remove remembers that an add-on was removed from a cluster without an edit that explains it.
func (m *memory) remove(addon, cluster string, now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.fleet(addon).removed[cluster] = now
}

// report remembers the reasons of an Event, and reports whether they are new.
func (m *memory) report(addon, reasons string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	f := m.fleet(addon)
	changed := f.reported != reasons
	f.reported = reasons
	return changed
}
