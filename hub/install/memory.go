package install

import (
	"maps"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// memory is what this process derives from its caches, so that a pass costs as much as what changed. After a restart it
// is derived again; what would be lost then is in annotations of the ClusterManagementAddOn.
type memory struct {
	mu sync.Mutex
	// decisions are what is known about the decisions of each Placement.
	decisions map[types.NamespacedName]*Decisions
	// fleets are the clusters of each add-on that may be unselected.
	fleets map[string]*fleet
}

// fleet is what is remembered about one add-on.
type fleet struct {
	// found reports whether all add-ons were looked at once. Before, nothing is noted.
	found bool
	// unselected are the clusters that have the add-on although no placement may select them.
	unselected map[string]absence
	// intent is the last that was seen of what people decide about placements, and intentSince when it was first seen.
	intent      string
	intentSince time.Time
	// removed is when the add-on was removed from clusters without an edit that explains it.
	removed map[string]time.Time
	// earlier is what an earlier process recorded of that, by minute.
	earlier map[string]int
	// reported are the reasons in the last Event about add-ons that are kept.
	reported string
}

// update replaces what is known about the decisions of a Placement.
func (m *memory) update(key types.NamespacedName, next func(before *Decisions) *Decisions) *Decisions {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.decisions == nil {
		m.decisions = map[types.NamespacedName]*Decisions{}
	}
	d := next(m.decisions[key])
	m.decisions[key] = d
	return d
}

// forgetPlacement forgets the decisions of a Placement that is gone.
func (m *memory) forgetPlacement(key types.NamespacedName) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.decisions, key)
}

func (m *memory) fleet(addon string) *fleet {
	if m.fleets == nil {
		m.fleets = map[string]*fleet{}
	}
	f := m.fleets[addon]
	if f == nil {
		f = &fleet{unselected: map[string]absence{}, removed: map[string]time.Time{}}
		m.fleets[addon] = f
	}
	return f
}

// begin reports whether all add-ons of a name must be looked at now. What is noted from here on is not lost. earlier is
// what an earlier process recorded of removals.
func (m *memory) begin(addon string, earlier map[string]int) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	f := m.fleet(addon)
	if f.earlier == nil {
		f.earlier = map[string]int{}
		maps.Copy(f.earlier, earlier)
	}
	first := !f.found
	f.found = true
	return first
}

// restart makes the next pass look at all add-ons of a name again.
func (m *memory) restart(addon string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if f := m.fleets[addon]; f != nil {
		f.found = false
	}
}

// note remembers that a cluster may have an add-on that no placement selects. dropped reports whether decisions dropped
// the cluster while it was available.
func (m *memory) note(addon, cluster string, dropped bool, now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	f := m.fleet(addon)
	if !f.found {
		return
	}
	a, known := f.unselected[cluster]
	if !known {
		a.noted = now
	}
	a.dropped = a.dropped || (dropped && !a.away)
	f.unselected[cluster] = a
}

// unselected returns a copy of the clusters that were noted for an add-on.
func (m *memory) unselected(addon string) map[string]absence {
	m.mu.Lock()
	defer m.mu.Unlock()
	return maps.Clone(m.fleet(addon).unselected)
}

// learn replaces what is known about a cluster that was noted.
func (m *memory) learn(addon, cluster string, a absence) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, known := m.fleet(addon).unselected[cluster]; known {
		m.fleet(addon).unselected[cluster] = a
	}
}

// forget forgets clusters of an add-on.
func (m *memory) forget(addon string, clusters ...string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if f := m.fleets[addon]; f != nil {
		for _, cluster := range clusters {
			delete(f.unselected, cluster)
		}
	}
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

// pending reports whether a pass over an add-on has something to look at.
func (m *memory) pending(addon string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	f := m.fleets[addon]
	return f == nil || !f.found || len(f.unselected) > 0
}

// intentSince returns since when this process knows the intent of an add-on.
func (m *memory) intentSince(addon, intent string, now time.Time) time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	f := m.fleet(addon)
	if f.intent != intent || f.intentSince.IsZero() {
		f.intent, f.intentSince = intent, now
	}
	return f.intentSince
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

// remove forgets a cluster that an add-on was removed from; unexplained reports whether the removal counts.
func (m *memory) remove(addon, cluster string, unexplained bool, now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	f := m.fleet(addon)
	delete(f.unselected, cluster)
	if unexplained {
		f.removed[cluster] = now
	}
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
