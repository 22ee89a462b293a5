package fleets

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"time"

	clusterv1alpha1 "open-cluster-management.io/api/cluster/v1alpha1"

	"github.com/spokelet/spokelet/hub/rollout/planner"
)

// stage is a set of clusters that have to be settled before the next one begins, with what the judge counts in it.
type stage struct {
	// late, index and name order the stages: mandatory groups are not late. A stage of all clusters that are in no
	// mandatory group has neither index nor name.
	late  bool
	index int
	name  string

	size, eligible, busy, failures, settled, awaited, gated, depends int
	admitted                                                         []string
}

func (s stage) compare(other stage) int {
	if s.late != other.late {
		if s.late {
			return 1
		}
		return -1
	}
	return cmp.Or(cmp.Compare(s.index, other.index), cmp.Compare(s.name, other.name))
}

// eligible reports whether a cluster may be admitted as far as it is concerned.
func eligible(c planner.Cluster) bool { return c.State == planner.Pending && c.Held == "" }

// onItsWay reports whether a cluster has the target and has not reached it.
func onItsWay(c planner.Cluster) bool {
	return c.State == planner.InFlight || c.State == planner.Failed
}

// expired reports whether a cluster took longer than the deadline.
func (s settings) expired(c planner.Cluster, now time.Time) bool {
	return s.deadline != nil && onItsWay(c) && !c.Since.IsZero() && now.Sub(c.Since) >= *s.deadline
}

// failure reports whether a cluster counts against what is tolerated.
func (s settings) failure(c planner.Cluster, now time.Time) bool {
	return c.State == planner.Failed || s.expired(c, now)
}

// soaking reports whether a cluster succeeded too short a time ago.
func (s settings) soaking(c planner.Cluster, now time.Time) bool {
	return c.State == planner.Succeeded && !c.Since.IsZero() && now.Sub(c.Since) < s.soak
}

// busy reports whether a cluster takes one of the slots.
func (s settings) busy(c planner.Cluster, now time.Time) bool {
	switch c.State {
	case planner.InFlight:
		return !s.expired(c, now)
	case planner.Failed:
		return s.deadline != nil && !c.Since.IsZero() && !s.expired(c, now)
	case planner.Succeeded:
		return s.soaking(c, now)
	case planner.Pending, planner.Awaited:
	}
	return false
}

// first reports whether a cluster is in a mandatory group.
func (s settings) first(c planner.Cluster) bool {
	return slices.ContainsFunc(s.mandatory, func(e clusterv1alpha1.MandatoryDecisionGroup) bool {
		return e.GroupName == c.GroupName && e.GroupName != "" || e.GroupName == "" && int(e.GroupIndex) == c.Group
	})
}

// stages sorts the clusters into their stages.
func (w *world) stages(p *place, r planner.Result) []stage {
	var stages []stage
	for _, c := range p.clusters {
		s := stage{late: !p.first(c)}
		if !s.late || p.kind == clusterv1alpha1.ProgressivePerGroup {
			s.index, s.name = c.Group, c.GroupName
			if c.Group < 0 {
				s.index = math.MaxInt
			}
		}
		at, found := slices.BinarySearchFunc(stages, s, stage.compare)
		if !found {
			stages = slices.Insert(stages, at, s)
		}
		st := &stages[at]
		st.size++
		switch {
		case eligible(c):
			st.eligible++
		case c.State == planner.Pending && c.Gated:
			st.gated++
		case c.State == planner.Pending && c.Depends:
			st.depends++
		case p.busy(c, w.now):
			st.busy++
		case c.State == planner.Succeeded:
			st.settled++
		case c.State == planner.Awaited:
			st.awaited++
		}
		if p.failure(c, w.now) {
			st.failures++
		}
		if _, admitted := slices.BinarySearch(r.New, c.Name); admitted {
			st.admitted = append(st.admitted, c.Name)
		}
	}
	return stages
}

// tolerated returns how many clusters of a stage may fail.
func (s settings) tolerated(st stage) int {
	switch {
	case s.kind == clusterv1alpha1.All:
		return st.size
	case !st.late:
		return 0
	}
	return s.failures.of(st.size)
}

// slots returns how many clusters of a stage may move at a time.
func (s settings) slots(st stage) int {
	if s.kind == clusterv1alpha1.Progressive && st.late {
		return s.limit(st.size)
	}
	return st.size
}

// judge checks the result for one placement.
func (w *world) judge(p *place, r planner.Result) {
	w.judgeLists(p, r)
	w.judgeCounts(p, r)
	if p.unusable != (r.Problem != "") {
		w.Violate("strategy %+v has problem %q", p.strategy, r.Problem)
	}
	isAbout := func(remark string) bool { return strings.Contains(remark, "progressDeadline") }
	if p.passedOver && !slices.ContainsFunc(r.Remarks, isAbout) {
		w.Violate("strategy %+v has a field that is passed over, and the remarks are %q", p.strategy, r.Remarks)
	}
	if p.held || p.unusable {
		if len(r.New) > 0 || r.Stopped != "" {
			w.Violate("%v are admitted while nothing may be, stopped: %q", r.New, r.Stopped)
		}
		return
	}
	stages := w.stages(p, r)
	waiting := slices.ContainsFunc(stages, func(s stage) bool { return s.eligible > 0 })
	failed := slices.ContainsFunc(stages, func(s stage) bool { return s.failures > p.tolerated(s) })
	if (r.Stopped != "") != (failed && waiting) {
		w.Violate("failed beyond what is tolerated: %t, waiting: %t, and stopped: %q", failed, waiting, r.Stopped)
	}
	if failed {
		if len(r.New) > 0 {
			w.Violate("%v are admitted while more failed than is tolerated", r.New)
		}
		return
	}
	w.judgeStages(p, stages)
}

// judgeStages checks that the first stage that is not settled, and no other, has as many clusters in its slots as it
// may have.
func (w *world) judgeStages(p *place, stages []stage) {
	open := true
	for _, s := range stages {
		free := max(0, p.slots(s)-s.busy)
		switch {
		case !open && len(s.admitted) > 0:
			w.Violate("%v of group %d %q are admitted before an earlier stage is settled", s.admitted, s.index, s.name)
		case len(s.admitted) > free:
			w.Violate("%v are admitted where %d slots are free", s.admitted, free)
		case open && len(s.admitted) < min(free, s.eligible):
			w.Violate("%v are admitted where %d slots are free and %d clusters wait", s.admitted, free, s.eligible)
		}
		unproved := s.depends > 0 && s.failures+s.depends > p.tolerated(s)
		if s.eligible > 0 || s.busy > 0 || s.awaited > 0 || s.gated > 0 || unproved || !s.late && s.settled == 0 {
			open = false
		}
	}
	for _, s := range stages {
		if len(s.admitted) == 0 || len(s.admitted) == s.eligible {
			continue
		}
		w.judgeTurns(p, s)
	}
}

// judgeTurns checks that broken clusters come before the others, and that both are admitted by name, in a stage of
// which some clusters wait.
func (w *world) judgeTurns(p *place, s stage) {
	var late planner.Cluster
	for _, c := range p.clusters {
		if slices.Contains(s.admitted, c.Name) && (late.Name == "" || before(late, c)) {
			late = c
		}
	}
	for _, c := range p.clusters {
		if eligible(c) && before(c, late) && !slices.Contains(s.admitted, c.Name) && p.kind == clusterv1alpha1.Progressive &&
			s.late && !p.first(c) {
			w.Violate("%s is admitted before %s", late.Name, c.Name)
		}
	}
}

// before reports whether it is the turn of a cluster before that of another one.
func before(a, b planner.Cluster) bool {
	if a.Broken != b.Broken {
		return a.Broken
	}
	return a.Name < b.Name
}

// judgeLists checks that every cluster is either admitted or held with a cause, and that those that have the target
// keep it.
func (w *world) judgeLists(p *place, r planner.Result) {
	byName := func(a, b planner.Wait) int { return cmp.Compare(a.Name, b.Name) }
	if !slices.IsSorted(r.Admit) || !slices.IsSorted(r.New) || !slices.IsSorted(r.TimedOut) ||
		!slices.IsSortedFunc(r.Hold, byName) {
		w.Violate("a list is not sorted: %+v", r)
	}
	fresh, late, listed := 0, 0, 0
	for _, c := range p.clusters {
		if c.State == planner.Awaited {
			continue
		}
		listed++
		admitted, why := r.Admits(c.Name), r.Why(c.Name)
		_, isNew := slices.BinarySearch(r.New, c.Name)
		_, timedOut := slices.BinarySearch(r.TimedOut, c.Name)
		switch {
		case admitted != (why == ""):
			w.Violate("%s is admitted: %t, and waits: %q", c.Name, admitted, why)
		case c.State != planner.Pending && !admitted:
			w.Violate("%s loses the target that it has", c.Name)
		case c.State == planner.Pending && c.Held != "" && why != c.Held:
			w.Violate("%s waits because %q, and not because %q", c.Name, why, c.Held)
		case isNew != (admitted && c.State == planner.Pending):
			w.Violate("%s is new: %t", c.Name, isNew)
		case timedOut != p.expired(c, w.now):
			w.Violate("%s timed out: %t", c.Name, timedOut)
		}
		if isNew {
			fresh++
		}
		if timedOut {
			late++
		}
	}
	if len(r.Admit)+len(r.Hold) != listed {
		w.Violate("%d clusters are admitted and %d held of %d", len(r.Admit), len(r.Hold), listed)
	}
	if fresh != len(r.New) || late != len(r.TimedOut) {
		w.Violate("a list names a cluster that does not exist: %v, %v", r.New, r.TimedOut)
	}
}

// judgeCounts counts again.
func (w *world) judgeCounts(p *place, r planner.Result) {
	want := planner.Counts{
		Total: len(p.clusters) + p.unserved, Configured: len(p.clusters), Progressing: len(r.New),
	}
	for _, c := range p.clusters {
		if p.expired(c, w.now) {
			want.TimedOut++
		}
		switch {
		case c.State == planner.Failed:
			want.Failed++
		case p.busy(c, w.now):
			want.Progressing++
		case c.State == planner.Succeeded:
			want.Done++
		}
	}
	if r.Counts != want {
		w.Violate("the counts are %+v, and should be %+v", r.Counts, want)
	}
}

// judgeOrder checks that the same fleet in another order leads to the same decision, and that the decision left the
// fleet as it was.
func (w *world) judgeOrder(plan planner.Plan) {
	if !same(plan, w.plan(w.now)) {
		w.Violate("the same fleet leads to another decision")
	}
	for _, p := range w.places {
		w.Random.Shuffle(len(p.clusters), func(i, j int) { p.clusters[i], p.clusters[j] = p.clusters[j], p.clusters[i] })
	}
	if again := w.plan(w.now); !same(plan, again) {
		w.Violate("the same fleet in another order leads to another decision: %+v, %+v", plan, again)
	}
}

// judgeWake checks that nothing changes before the instant to wake at, and that something does then.
func (w *world) judgeWake(plan planner.Plan) {
	if plan.Wake.IsZero() {
		if later := w.plan(w.now.Add(1000 * time.Hour)); !same(plan, later) {
			w.Violate("nobody wakes, and the decision changes with time")
		}
		return
	}
	if !plan.Wake.After(w.now) {
		w.Violate("the instant to wake at, %s, is not after %s", plan.Wake, w.now)
		return
	}
	if before := w.plan(plan.Wake.Add(-1)); !same(plan, before) {
		w.Violate("the decision changes before the instant to wake at")
	}
	if then := w.plan(plan.Wake); same(plan, then) {
		w.Violate("nothing changes at the instant to wake at")
	}
}

// judgeAgain checks that nobody else is admitted, and nobody else waits, after all that were admitted began.
func (w *world) judgeAgain(plan planner.Plan) {
	again := w.plan(w.now)
	for n, p := range w.places {
		if p.deadline != nil && *p.deadline == 0 {
			continue // Those that began timed out in that instant.
		}
		if before, after := plan.Placements[n], again.Placements[n]; !slices.Equal(before.Admit, after.Admit) ||
			!slices.Equal(before.Hold, after.Hold) || len(after.New) > 0 {
			w.Violate("the decision is another one after it was carried out: %v, %v", before.Admit, after.Admit)
		}
	}
}

// same reports whether two plans are the same.
func same(a, b planner.Plan) bool {
	return a.Wake.Equal(b.Wake) && slices.EqualFunc(a.Placements, b.Placements, func(a, b planner.Result) bool {
		return slices.Equal(a.Admit, b.Admit) && slices.Equal(a.New, b.New) && slices.Equal(a.Hold, b.Hold) &&
			slices.Equal(a.TimedOut, b.TimedOut) && a.Counts == b.Counts && a.Problem == b.Problem &&
			a.Stopped == b.Stopped && slices.Equal(a.Remarks, b.Remarks) && a.Wake.Equal(b.Wake)
	})
}
