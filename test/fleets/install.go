package fleets

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"

	"github.com/spokelet/spokelet/hub/fleet"
	"github.com/spokelet/spokelet/hub/placement/layout"
	"github.com/spokelet/spokelet/internal/names"
)

// Decider tells from a Placement and its PlacementDecisions which clusters are unselected; fleet.NewDecisions is one.
type Decider func(seen fleet.Seen, now time.Time) *fleet.Decisions

const (
	// longestGap is the longest time between two writes of a placement controller that stops and is replaced.
	longestGap = fleet.FailoverPeriod - 10*time.Second
	// longestLag is how far a watch is behind.
	longestLag = fleet.QuietPeriod / 2
)

// Install is the property of installation that no cluster which a placement selects before and after a change of its
// decisions is ever unselected in between, wherever its controller stops between two writes, and that clusters which
// are deselected are unselected in the end.
func Install(decide Decider) Property {
	return Property{Name: "install", Play: func(g *Game) { newInstallation(g, decide).play() }}
}

// installation is one placement, its controller, and the hub manager that looks at both through watches.
type installation struct {
	*Game
	decide Decider
	now    time.Time
	writer writer
	// wanted are the selections of which at least one write was made since the last one that was written completely, which
	// is the first.
	wanted [][]string
	// stored holds what the API server has had, in the order of writes.
	stored []version
	// pages and placement are how many writes the watches of both have shown.
	pages, placement int
	version          int
	before           *fleet.Decisions
	universe         []string
}

// version is the state of the API server after a write.
type version struct {
	at        time.Time
	pages     []*clusterv1beta1.PlacementDecision
	placement *clusterv1beta1.Placement
}

func newInstallation(g *Game, decide Decider) *installation {
	n := 3 + g.Random.IntN(40)
	if g.chance(20) {
		n = 90 + g.Random.IntN(250)
	}
	w := &installation{
		Game: g, decide: decide, now: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC), writer: newWriter(g.Random),
	}
	for i := range n {
		w.universe = append(w.universe, fmt.Sprintf("c%04d", i))
	}
	p := &clusterv1beta1.Placement{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "p", UID: "p", Generation: 1}}
	w.writer.describe(p)
	w.stored = []version{{at: w.now, placement: p}}
	return w
}

func (w *installation) play() {
	first := w.draw(nil)
	w.wanted = [][]string{nil, first} // Before the first decision, nothing is selected.
	w.writeAll(w.writer.writes(w.last(), first, w.Random), time.Second)
	w.settle(first)
	for range 1 + w.Random.IntN(4) {
		current := w.wanted[0]
		for {
			next := w.draw(current)
			w.wanted = append(w.wanted, next)
			if w.chance(6) {
				w.replace()
			}
			if w.chance(4) {
				w.begin()
			}
			writes := w.writer.writes(w.last(), next, w.Random)
			if len(writes) > 0 && w.chance(3) {
				// The controller stops, and another one decides again.
				w.writeAll(writes[:w.Random.IntN(len(writes))], longestGap)
				current = next
				continue
			}
			w.writeAll(writes, time.Second)
			w.settle(next)
			break
		}
		if w.Violated() {
			return
		}
	}
}

// replace deletes the Placement and creates it again, as GitOps does: the new one has decided nothing, and the
// decisions of the former are gone.
func (w *installation) replace() {
	w.writeAll([]write{func(next *version, rv string) {
		p := &clusterv1beta1.Placement{ObjectMeta: *next.placement.ObjectMeta.DeepCopy(), Spec: next.placement.Spec}
		p.UID = types.UID("p" + rv)
		var kept []*clusterv1beta1.PlacementDecision
		if !w.writer.sticky && !w.writer.silent && len(next.pages) > 0 && w.chance(2) {
			// A finalizer of another client keeps a page, which other controllers take over by its name.
			kept = append(kept, w.going(next.pages[0], rv))
		}
		next.placement, next.pages = p, kept
	}}, time.Second)
}

// begin lets a client delete the first page, which a finalizer of another client keeps.
func (w *installation) begin() {
	if len(w.last().pages) == 0 || isGoing(w.last().pages[0]) || w.writer.silent {
		return
	}
	w.writeAll([]write{func(next *version, rv string) {
		next.pages[0] = w.going(next.pages[0], rv)
	}}, time.Second)
}

// going is a page that is being deleted, and kept.
func (w *installation) going(page *clusterv1beta1.PlacementDecision, rv string) *clusterv1beta1.PlacementDecision {
	going := page.DeepCopy()
	going.ResourceVersion, going.DeletionTimestamp = rv, &metav1.Time{Time: w.now}
	going.Finalizers = []string{"example.com/backup"}
	return going
}

// draw returns a selection that differs a little from another one.
func (w *installation) draw(from []string) []string {
	in := map[string]bool{}
	for _, cluster := range from {
		in[cluster] = true
	}
	if from == nil {
		for _, cluster := range w.universe {
			in[cluster] = !w.chance(3)
		}
	} else {
		// As many come as go, mostly, so that the number in the status stays.
		swaps := w.Random.IntN(4)
		for range swaps {
			in[w.universe[w.Random.IntN(len(w.universe))]] = true
		}
		for range swaps + w.Random.IntN(2) - w.Random.IntN(2) {
			in[w.universe[w.Random.IntN(len(w.universe))]] = false
		}
	}
	var selected []string
	for _, cluster := range w.universe {
		if in[cluster] {
			selected = append(selected, cluster)
		}
	}
	return selected
}

func (w *installation) last() version { return w.stored[len(w.stored)-1] }

// writeAll makes writes, with pauses between them and one after the last of up to a time, and looks at what the hub
// manager decides meanwhile. Seldom a pause is long.
func (w *installation) writeAll(writes []write, last time.Duration) {
	for i, change := range writes {
		next := version{at: w.now, pages: slices.Clone(w.last().pages), placement: w.last().placement}
		w.version++
		change(&next, strconv.Itoa(w.version))
		w.stored = append(w.stored, next)
		longest := time.Second
		switch {
		case i == len(writes)-1:
			longest = last
		case w.chance(20):
			longest = longestGap
		}
		w.pass(longest)
	}
}

// settle lets time pass until all must be decided, and checks that it is.
func (w *installation) settle(selected []string) {
	w.pass(longestLag)
	w.pages, w.placement = len(w.stored)-1, len(w.stored)-1
	w.wanted = [][]string{selected}
	known := w.look()
	if w.writer.own() {
		w.now = w.now.Add(fleet.QuietPeriod)
	} else {
		w.now = w.now.Add(fleet.FailoverPeriod)
	}
	for _, cluster := range w.universe {
		out := !slices.Contains(selected, cluster)
		_, err := known.Unselected(cluster, w.now)
		if known.Selects(cluster) == out {
			w.Violate("%s is selected: %t", cluster, !out)
		}
		// Nobody can tell a writer that selects nothing and says nothing from one that has not decided yet.
		if out && err != nil && (!w.writer.silent || len(selected) > 0) {
			w.Violate("%s is deselected and stays: %v", cluster, err)
		}
	}
	w.stored, w.pages, w.placement = w.stored[len(w.stored)-1:], 0, 0
}

// pass lets up to a time pass; the watches catch up in steps, and the hub manager decides after each.
func (w *installation) pass(longest time.Duration) {
	end := w.now.Add(time.Duration(w.Random.Int64N(int64(longest))))
	for {
		w.Steps++
		w.pages, w.placement = w.seen(w.pages), w.seen(w.placement)
		w.judge(w.look())
		if !w.now.Before(end) {
			return
		}
		w.now = w.now.Add(min(end.Sub(w.now), max(time.Millisecond, end.Sub(w.now)/2)))
		if end.Sub(w.now) < 10*time.Millisecond {
			w.now = end
		}
	}
}

// seen returns how many writes a watch has shown after it had shown some.
func (w *installation) seen(n int) int {
	for n < len(w.stored)-1 && (w.now.Sub(w.stored[n+1].at) >= longestLag || w.chance(2)) {
		n++
	}
	return n
}

// look holds what the hub manager knows.
func (w *installation) look() *fleet.Decisions {
	if w.chance(50) {
		w.before = nil // It starts again.
	}
	p := w.stored[w.placement].placement
	w.before = w.decide(fleet.Seen{
		Key: types.NamespacedName{Namespace: "ns", Name: "p"}, Placement: p,
		Pages: slices.Clone(w.stored[w.pages].pages), Own: w.writer.own(), Before: w.before,
	}, w.now)
	return w.before
}

// judge checks that no cluster is unselected which is in all selections, and that the hub manager wakes in time.
func (w *installation) judge(known *fleet.Decisions) {
	for _, cluster := range w.wanted[0] {
		if known.Selects(cluster) {
			continue
		}
		w.Decisions++
		wake, err := known.Unselected(cluster, w.now)
		if err == nil && w.always(cluster) {
			w.Violate("%s is uninstalled, and was selected all the time", cluster)
			return
		}
		if err != nil && !wake.IsZero() {
			_, early := known.Unselected(cluster, wake.Add(-1))
			_, late := known.Unselected(cluster, wake)
			if early == nil || late != nil {
				w.Violate("%s is decided before %s or not then", cluster, wake)
			}
		}
	}
}

// always reports whether a cluster is in all selections that are written at the moment.
func (w *installation) always(cluster string) bool {
	for _, selected := range w.wanted {
		if _, found := slices.BinarySearch(selected, cluster); !found {
			return false
		}
	}
	return true
}

// write is one write of a placement controller; the version is the new resourceVersion.
type write func(next *version, resourceVersion string)

// writer is a placement controller.
type writer struct {
	// perGroup is how many clusters a decision group has, 0 for all; percent makes it a share.
	perGroup int
	percent  bool
	// named puts clusters into groups with names; sticky is the built-in placement; silent writes no status.
	named, sticky, silent bool
}

func newWriter(random *rand.Rand) writer {
	w := writer{}
	if random.IntN(4) > 0 {
		w.perGroup = 1 + random.IntN(12)
		w.percent = random.IntN(4) == 0
	}
	switch random.IntN(8) {
	case 0:
		w.named = true
	case 1, 2:
		w.sticky, w.named = true, random.IntN(2) == 0
	case 3:
		w.silent = true
	}
	return w
}

// own reports whether the writer is that of the hub manager itself.
func (w writer) own() bool { return w.sticky }

// describe puts the strategy of the groups into a Placement.
func (w writer) describe(p *clusterv1beta1.Placement) {
	strategy := &p.Spec.DecisionStrategy.GroupStrategy
	switch {
	case w.percent:
		strategy.ClustersPerDecisionGroup = intstr.FromString(strconv.Itoa(10*w.perGroup%100+1) + "%")
	case w.perGroup > 0:
		strategy.ClustersPerDecisionGroup = intstr.FromInt32(int32(w.perGroup))
	}
	if w.named {
		strategy.DecisionGroups = []clusterv1beta1.DecisionGroup{{GroupName: "canary"}}
	}
	if w.silent {
		p.Annotations = map[string]string{clusterv1beta1.PlacementDisableAnnotation: "true"}
	}
}

// part is the content of one PlacementDecision.
type part struct {
	group    string
	clusters []string
}

// writes returns the writes that lead from a state to a selection.
func (w writer) writes(from version, selected []string, random *rand.Rand) []write {
	var all []write
	if w.sticky {
		all = w.ownWrites(from, selected, random)
	} else {
		all = w.orderedWrites(from, w.parts(selected, random))
	}
	if w.silent {
		return all
	}
	all = append(all, func(next *version, _ string) {
		p := next.placement.DeepCopy()
		var listed []string
		pages := next.pages
		if w.sticky {
			pages = slices.DeleteFunc(slices.Clone(pages), isGoing)
		}
		for _, page := range pages {
			listed = append(listed, page.Name)
		}
		p.Status.NumberOfSelectedClusters = int32(len(selected))
		p.Status.DecisionGroups = []clusterv1beta1.DecisionGroupStatus{{Decisions: listed}}
		p.Status.Conditions = []metav1.Condition{{Type: clusterv1beta1.PlacementConditionSatisfied}}
		if w.sticky {
			p.Status.Conditions = append(p.Status.Conditions, fleet.Mark(p.Generation, pages))
		}
		next.placement = p
	})
	if w.sticky {
		return append(all, func(next *version, _ string) {
			next.pages = slices.DeleteFunc(next.pages, isGoing)
		})
	}
	if len(from.pages) > 0 && isGoing(from.pages[0]) {
		// The page that was kept goes, and is written again.
		var clusters []string
		all = append(all, func(next *version, rv string) {
			was := next.pages[0]
			clusters = clustersOf(was)
			next.pages[0] = newPage(1, rv, was.Labels[names.LabelDecisionGroupName], 0, next.placement)
		}, func(next *version, rv string) { fill(0, clusters)(next, rv) })
	}
	return all
}

func isGoing(page *clusterv1beta1.PlacementDecision) bool { return page.DeletionTimestamp != nil }

// parts cuts a selection into groups, and those into parts of at most 100 clusters.
func (w writer) parts(selected []string, random *rand.Rand) []part {
	groups := []part{{clusters: selected}}
	if w.named {
		canary, rest := part{group: "canary"}, part{}
		for _, cluster := range selected {
			if random.IntN(5) == 0 {
				canary.clusters = append(canary.clusters, cluster)
			} else {
				rest.clusters = append(rest.clusters, cluster)
			}
		}
		groups = []part{canary, rest}
	}
	size := len(selected) + 1
	switch {
	case w.percent:
		size = max(1, (len(selected)*(10*w.perGroup%100+1)+99)/100)
	case w.perGroup > 0:
		size = w.perGroup
	}
	const most = 100
	var all []part
	for _, group := range groups {
		for chunk := range slices.Chunk(group.clusters, min(size, most)) {
			all = append(all, part{group.group, chunk})
		}
	}
	if len(all) == 0 {
		all = []part{{}}
	}
	return all
}

// orderedWrites writes one part after the other. A new PlacementDecision is empty at first, and those that are left
// over are deleted at last.
func (w writer) orderedWrites(from version, parts []part) []write {
	var all []write
	for i, p := range parts {
		if i >= len(from.pages) {
			all = append(all, func(next *version, rv string) {
				next.pages = append(next.pages, newPage(i+1, rv, p.group, i, next.placement))
			})
		} else if from.pages[i].Labels[names.LabelDecisionGroupName] != p.group {
			all = append(all, func(next *version, rv string) {
				changed := next.pages[i].DeepCopy()
				changed.Labels[names.LabelDecisionGroupName], changed.ResourceVersion = p.group, rv
				next.pages[i] = changed
			})
		}
		if i >= len(from.pages) || !slices.Equal(clustersOf(from.pages[i]), p.clusters) {
			all = append(all, fill(i, p.clusters))
		}
	}
	for range max(0, len(from.pages)-len(parts)) {
		all = append(all, func(next *version, _ string) { next.pages = next.pages[:len(next.pages)-1] })
	}
	return all
}

// ownWrites writes as the built-in placement does, by its own layout. Some clusters change their group each time.
func (w writer) ownWrites(from version, selected []string, random *rand.Rand) []write {
	strategy := from.placement.Spec.DecisionStrategy.GroupStrategy
	request := layout.Request{Placement: from.placement, Have: from.pages, Selected: map[string]int{}}
	// The writer describes a Placement that is valid.
	request.Size, _ = layout.ParseSize(strategy.ClustersPerDecisionGroup)
	for _, group := range strategy.DecisionGroups {
		request.Groups = append(request.Groups, group.GroupName)
	}
	for i, cluster := range selected {
		request.Selected[cluster] = len(request.Groups)
		if w.named && (i%7 == 0) != (random.IntN(8) == 0) {
			request.Selected[cluster] = 0
		}
	}
	var all []write
	for _, slice := range layout.Plan(request).Slices {
		if slice.Changed() {
			all = append(all, sliceWrites(slice)...)
		}
	}
	return all
}

// sliceWrites are the writes of one PlacementDecision: its metadata, then its decisions; or its deletion.
func sliceWrites(slice layout.Slice) []write {
	at := func(next *version) int {
		return slices.IndexFunc(next.pages, func(page *clusterv1beta1.PlacementDecision) bool {
			return slice.Have != nil && page.Name == slice.Have.Name || slice.Want != nil && page.Name == slice.Want.Name
		})
	}
	switch {
	case slice.Kept():
		return []write{func(next *version, rv string) { fill(at(next), nil)(next, rv) }}
	case slice.Want == nil:
		return []write{func(next *version, _ string) { next.pages = slices.Delete(next.pages, at(next), at(next)+1) }}
	}
	return []write{
		func(next *version, rv string) {
			changed := slice.Want.DeepCopy()
			changed.ResourceVersion, changed.Status = rv, clusterv1beta1.PlacementDecisionStatus{}
			if i := at(next); i >= 0 {
				changed.Status = next.pages[i].Status
				next.pages[i] = changed
				return
			}
			next.pages = append(next.pages, changed)
		},
		func(next *version, rv string) {
			changed := next.pages[at(next)].DeepCopy()
			changed.ResourceVersion, changed.Status = rv, *slice.Want.Status.DeepCopy()
			next.pages[at(next)] = changed
		},
	}
}

func fill(i int, clusters []string) write {
	return func(next *version, rv string) {
		changed := next.pages[i].DeepCopy()
		changed.ResourceVersion, changed.Status.Decisions = rv, nil
		for _, cluster := range clusters {
			changed.Status.Decisions = append(changed.Status.Decisions, clusterv1beta1.ClusterDecision{ClusterName: cluster})
		}
		next.pages[i] = changed
	}
}

func newPage(number int, rv, group string, index int, of *clusterv1beta1.Placement,
) *clusterv1beta1.PlacementDecision {
	return &clusterv1beta1.PlacementDecision{ObjectMeta: metav1.ObjectMeta{
		OwnerReferences: []metav1.OwnerReference{{UID: of.UID, Controller: new(true)}},
		Name:            fmt.Sprintf("p-decision-%d", number), ResourceVersion: rv,
		Labels: map[string]string{
			names.LabelPlacement: "p", names.LabelDecisionGroupName: group,
			names.LabelDecisionGroupIndex: strconv.Itoa(index),
		},
	}}
}

func clustersOf(page *clusterv1beta1.PlacementDecision) []string {
	var clusters []string
	for _, d := range page.Status.Decisions {
		clusters = append(clusters, d.ClusterName)
	}
	return clusters
}
