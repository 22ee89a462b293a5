package planner

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"

	clusterv1alpha1 "open-cluster-management.io/api/cluster/v1alpha1"

	"github.com/spokelet/spokelet/internal/causes"
	"github.com/spokelet/spokelet/internal/message"
)

// maxNames is how many clusters a sentence names.
const maxNames = 3

// waveKey identifies a wave, and its order among the others.
type waveKey struct {
	kind waveKind
	// index and name are those of the decision group; zero for a wave of several groups.
	index int
	name  string
}

// waveKind says what a wave consists of. A lower one comes first.
type waveKind uint8

const (
	// mandatoryGroup is a wave of one mandatory decision group.
	mandatoryGroup waveKind = iota
	// oneGroup is a wave of one other decision group.
	oneGroup
	// manyGroups is a wave of all clusters that are in no mandatory group.
	manyGroups
)

func (k waveKey) compare(other waveKey) int {
	return cmp.Or(cmp.Compare(k.kind, other.kind), cmp.Compare(k.index, other.index), cmp.Compare(k.name, other.name))
}

func (k waveKey) String() string {
	group := fmt.Sprintf("decision group %d", k.index)
	if k.index == lastGroup {
		group = "the clusters without a decision group"
	}
	if k.name != "" {
		group += " (" + k.name + ")"
	}
	switch k.kind {
	case mandatoryGroup:
		return "mandatory " + group
	case oneGroup:
		return group
	case manyGroups:
	}
	return "the placement"
}

// lastGroup is the index of clusters whose decisions have none.
const lastGroup = math.MaxInt

// wave is a set of clusters that move before the clusters of the next wave, with the numbers of their phases.
type wave struct {
	key waveKey
	// limit is how many clusters may move at a time, tolerated how many may fail.
	limit, tolerated                     int
	size, waiting, slots, failures, done int
	// gated is how many clusters wait for a policy or a window.
	gated int
	// depends is how many wait for an add-on on which theirs depends.
	depends int
	// tolerant is set where all may fail.
	tolerant bool
	// awaited are the clusters that have no add-on yet.
	awaited []string
}

// stopped reports whether more clusters failed than the wave tolerates.
func (w wave) stopped() bool { return w.failures > w.tolerated }

// finished reports whether the next wave may begin.
func (w wave) finished() bool {
	moves := w.waiting > 0 || w.gated > 0 || w.slots > 0 || len(w.awaited) > 0
	return !moves && !w.unproved() && (w.key.kind != mandatoryGroup || w.done > 0 || w.tolerant)
}

// unproved reports whether fewer clusters have the content than the next wave needs, because of dependencies.
func (w wave) unproved() bool { return w.depends > 0 && w.failures+w.depends > w.tolerated }

// tolerance says how many clusters of a wave may fail.
func (w wave) tolerance(r rules) string {
	if w.key.kind == mandatoryGroup {
		return "a mandatory group tolerates none"
	}
	return fmt.Sprintf("maxFailures %s tolerates %d", r.failures, w.tolerated)
}

// wavesOf returns the waves of the clusters in their order, and writes into each cluster which is its own.
func wavesOf(r rules, members []member) []wave {
	var waves []wave
	at := map[waveKey]int{}
	for n := range members {
		key := r.wave(members[n].Cluster)
		index, known := at[key]
		if !known {
			index = len(waves)
			at[key] = index
			waves = append(waves, wave{key: key})
		}
		members[n].wave = index
		waves[index].add(&members[n])
	}
	slices.SortFunc(waves, func(a, b wave) int { return a.key.compare(b.key) })
	moved := make([]int, len(waves))
	for to := range waves {
		w := &waves[to]
		moved[at[w.key]] = to
		w.limit, w.tolerated = w.size, r.failures.of(w.size)
		switch w.key.kind {
		case mandatoryGroup:
			w.tolerated = 0
		case manyGroups:
			w.limit = r.concurrency.of(w.size)
		case oneGroup:
		}
		if r.tolerant {
			w.tolerant, w.tolerated = true, math.MaxInt
		}
	}
	for n := range members {
		members[n].wave = moved[members[n].wave]
	}
	return waves
}

// wave returns the wave of a cluster.
func (r rules) wave(c *Cluster) waveKey {
	index := c.Group
	if index < 0 {
		index = lastGroup
	}
	for _, entry := range r.mandatory {
		if selects(entry, index, c.GroupName) {
			return waveKey{kind: mandatoryGroup, index: index, name: c.GroupName}
		}
	}
	if r.kind == clusterv1alpha1.ProgressivePerGroup {
		return waveKey{kind: oneGroup, index: index, name: c.GroupName}
	}
	return waveKey{kind: manyGroups}
}

// selects reports whether an entry of the mandatory groups means the group. Its name wins over its index, and counts
// for every index that has it. Without a name an index of 0 is one: an entry means something.
func selects(entry clusterv1alpha1.MandatoryDecisionGroup, index int, name string) bool {
	if entry.GroupName != "" {
		return entry.GroupName == name
	}
	return int(entry.GroupIndex) == index
}

// add counts a cluster.
func (w *wave) add(m *member) {
	if !m.Leaving { // Shares are those of the clusters that are selected.
		w.size++
	}
	switch m.phase {
	case waiting:
		w.waiting++
	case awaited:
		w.awaited = append(w.awaited, m.Name)
	case done:
		w.done++
	case held, flying, failing, failed, timedOut, soaking, overdue, gone, lost, returning:
	}
	if m.phase.pends() && m.Gated { // It moves when the policy or the window lets it.
		w.gated++
	}
	if m.phase == held && m.Depends {
		w.depends++
	}
	if m.phase.failure() {
		w.failures++
	}
	if m.phase.keepsSlot() {
		w.slots++
	}
}

// readmit marks the clusters that had the target and return to it. They take their slots before those that wait.
func readmit(waves []wave, members []member) {
	for n := range members {
		if m := &members[n]; m.phase == returning && m.Held == "" {
			m.admitted = true
			waves[m.wave].slots++
		}
	}
}

// admit marks the waiting clusters of the first wave that is not finished, as many as it has free slots: those that an
// earlier target left broken before the others, because the target may be what repairs them, and else by name.
func admit(waves []wave, members []member) {
	first := slices.IndexFunc(waves, func(w wave) bool { return !w.finished() })
	if first < 0 {
		return
	}
	free := waves[first].limit - waves[first].slots
	for _, broken := range []bool{true, false} {
		for n := range members {
			if free <= 0 {
				return
			}
			if m := &members[n]; m.wave == first && m.phase == waiting && m.Broken == broken {
				m.admitted = true
				free--
			}
		}
	}
}

// fail names the clusters that failed where more did than their wave tolerates.
func (r *Result) fail(waves []wave, members []member) {
	at := slices.IndexFunc(waves, wave.stopped)
	if at < 0 {
		return
	}
	for n := range members {
		if m := &members[n]; m.wave == at && m.phase.failure() {
			r.Failing = append(r.Failing, m.Name)
		}
	}
	w := waves[at]
	r.Tolerated = w.tolerated
	r.FailingOf = fmt.Sprintf("%d of %d clusters of %s failed or timed out (%s)", w.failures, w.size, w.key,
		message.List(r.Failing, maxNames, ", "))
}

// stopped explains which failures keep waiting clusters from being admitted; empty when none do. Failures of any wave
// stop all: they are failures of the same target.
func stopped(r rules, waves []wave, members []member, result Result) string {
	if !slices.ContainsFunc(members, func(m member) bool { return m.phase == waiting }) {
		return ""
	}
	at := slices.IndexFunc(waves, wave.stopped)
	if at < 0 {
		return ""
	}
	w := waves[at]
	return fmt.Sprintf(causes.HasStopped+"%s, and %s; it goes on when they are well, or with another configuration",
		result.FailingOf, w.tolerance(r))
}

// reason explains why clusters in a wave of the kind wait. It follows from the strategy alone, so that the progress of
// others causes no write.
func reason(r rules, kind waveKind) string {
	why := causes.WaitsForTurn
	switch kind {
	case mandatoryGroup:
		why += fmt.Sprintf("mandatory decision groups (%s) follow one another and tolerate no failure", mandatoryNames(r))
	case oneGroup:
		why += fmt.Sprintf("decision groups follow one another, and maxFailures is %s in each", r.failures)
	case manyGroups:
		why += fmt.Sprintf("maxConcurrency is %s, maxFailures is %s", r.concurrency, r.failures)
	}
	if kind != mandatoryGroup && len(r.mandatory) > 0 {
		why += fmt.Sprintf(", and mandatory decision groups come first (%s)", mandatoryNames(r))
	}
	return why + "; status.installProgressions of the ClusterManagementAddOn reports the progress"
}

// mandatoryNames names the mandatory groups as the strategy does.
func mandatoryNames(r rules) string {
	groups := make([]string, len(r.mandatory))
	for i, entry := range r.mandatory {
		groups[i] = cmp.Or(entry.GroupName, "group "+strconv.Itoa(int(entry.GroupIndex)))
	}
	return message.List(groups, maxNames, ", ")
}

// remarks name the mandatory groups that are not what their author may think, and the add-ons that others wait for.
func remarks(r rules, waves []wave, clusters int) []string {
	if clusters == 0 {
		return nil
	}
	var found []string
	for _, entry := range r.mandatory {
		if !slices.ContainsFunc(waves, func(w wave) bool {
			return w.key.kind == mandatoryGroup && selects(entry, w.key.index, w.key.name)
		}) {
			found = append(found, fmt.Sprintf("mandatory decision group %s has no cluster with the add-on",
				cmp.Or(entry.GroupName, strconv.Itoa(int(entry.GroupIndex)))))
		}
	}
	for n, w := range waves {
		others := slices.ContainsFunc(waves, func(w wave) bool { return w.waiting > 0 })
		if others && w.key.kind == mandatoryGroup && w.waiting+w.gated+w.slots+w.failures+w.done+len(w.awaited) == 0 {
			found = append(found, fmt.Sprintf("no cluster of %s may be changed, so the others wait", w.key))
		}
		later := slices.ContainsFunc(waves[n+1:], func(w wave) bool { return w.waiting > 0 })
		if later && w.gated > 0 {
			found = append(found, fmt.Sprintf("%d of %d clusters of %s wait for a policy or a window, so later groups wait",
				w.gated, w.size, w.key))
		}
		if later && w.unproved() {
			found = append(found, w.unprovedText(r))
		}
		if later && len(w.awaited) > 0 {
			found = append(found, fmt.Sprintf("the add-on is not installed yet on %d of %d clusters of %s (%s), so later "+
				"groups wait", len(w.awaited), w.size, w.key, message.List(w.awaited, maxNames, ", ")))
		}
	}
	return found
}

// unprovedText says why later groups wait for a wave with clusters that wait for a dependency.
func (w wave) unprovedText(r rules) string {
	failed := ""
	if w.failures > 0 {
		failed = fmt.Sprintf(", %d failed or timed out", w.failures)
	}
	return fmt.Sprintf("%d of %d clusters of %s wait for an add-on that they depend on%s, and %s, so later groups wait",
		w.depends, w.size, w.key, failed, w.tolerance(r))
}
