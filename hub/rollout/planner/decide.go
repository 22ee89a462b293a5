package planner

import (
	"slices"
	"strings"
	"time"

	"github.com/spokelet/spokelet/internal/reconcile"
)

// Make decides the rollout of an add-on. It takes O(n log n) for n clusters, and O(n) when they are sorted by name.
func Make(f Fleet) Plan {
	plan := Plan{Placements: make([]Result, len(f.Placements))}
	for n, placement := range f.Placements {
		plan.Placements[n] = decide(placement, f.Now)
		plan.Wake = reconcile.Earliest(plan.Wake, plan.Placements[n].Wake)
	}
	return plan
}

// decide decides for one placement.
func decide(p Placement, now time.Time) Result {
	rules, problem := rulesOf(p)
	rules.tolerant = p.Undoes
	members, wake := judge(p.Clusters, rules, now)
	waves := wavesOf(rules, members)
	result := Result{Problem: problem, Wake: wake, Waves: len(waves)}
	result.Wave = 1 + slices.IndexFunc(waves, func(w wave) bool { return !w.finished() })
	if result.Wave > 0 {
		result.Turn = rules.id(waves[result.Wave-1].key)
	}
	switch {
	case problem != "":
		result.hold(members, func(*member) string { return problem })
	case p.Held != "":
		result.hold(members, func(*member) string { return p.Held })
	default:
		result.fail(waves, members)
		result.Stopped = stopped(rules, waves, members, result)
		readmit(waves, members)
		if result.Stopped == "" {
			admit(waves, members)
		}
		var why [manyGroups + 1]string
		result.hold(members, func(m *member) string {
			kind := waves[m.wave].key.kind
			if why[kind] == "" {
				why[kind] = reason(rules, kind)
			}
			return why[kind]
		})
		result.Remarks = remarks(rules, waves, len(members))
	}
	if rules.remark != "" {
		result.Remarks = append(result.Remarks, rules.remark)
	}
	result.count(p, members)
	result.settle(p, rules, members, now)
	return result
}

// hold sorts the clusters into those that may have the target and those that keep what they have. The cause of a
// cluster of its own outweighs why the others wait.
func (r *Result) hold(members []member, why func(*member) string) {
	var keeping int
	for n := range members {
		if m := &members[n]; m.phase.absent() || m.phase.pends() && !m.admitted {
			keeping++
		}
	}
	if keeping > 0 {
		r.Hold = make([]Wait, 0, keeping)
	}
	r.Admit = make([]string, 0, len(members)-keeping)
	for n := range members {
		m := &members[n]
		switch {
		case m.phase.absent(): // There is no add-on that could be told.
		case m.phase.pends() && m.Held != "":
			r.Hold = append(r.Hold, Wait{Name: m.Name, Why: m.Held})
		case m.phase.pends() && !m.admitted:
			r.Hold = append(r.Hold, Wait{Name: m.Name, Why: why(m)})
		default:
			r.Admit = append(r.Admit, m.Name)
			if m.admitted {
				r.New = append(r.New, m.Name)
			}
		}
		if m.phase.late() {
			r.TimedOut = append(r.TimedOut, m.Name)
		}
	}
}

// phase says what a state means under the rules of a strategy; doc.go has the table.
type phase uint8

const (
	waiting phase = iota
	held
	flying
	failing
	failed
	timedOut
	soaking
	done
	awaited
	overdue
	gone
	lost
	returning
)

// absent reports whether a cluster of this phase has no add-on, or one that goes.
func (p phase) absent() bool { return p == awaited || p == overdue || p == gone || p == lost }

// pends reports whether a cluster of this phase has not been admitted to the target.
func (p phase) pends() bool { return p == waiting || p == held || p == returning }

// failure reports whether a cluster of this phase counts against what its wave tolerates.
func (p phase) failure() bool {
	return p == failing || p == failed || p == lost || p == returning || p.late()
}

// late reports whether a cluster of this phase is on its way for longer than the progressDeadline.
func (p phase) late() bool { return p == timedOut || p == gone }

// keepsSlot reports whether a cluster of this phase counts against what may move at a time.
func (p phase) keepsSlot() bool { return p == flying || p == failing || p == soaking }

// member is a cluster and what was found out about it.
type member struct {
	*Cluster
	// wave is the index of its wave.
	wave  int
	phase phase
	// admitted is set when a cluster that waits or returns is admitted now.
	admitted bool
}

// judge returns the clusters with their phases, sorted by name, and the next instant at which a phase ends by itself.
func judge(clusters []Cluster, r rules, now time.Time) (members []member, wake time.Time) {
	members = make([]member, len(clusters))
	for n := range clusters {
		phase, until := r.phase(&clusters[n], now)
		members[n] = member{Cluster: &clusters[n], phase: phase}
		wake = reconcile.Earliest(wake, until)
	}
	byName := func(a, b member) int { return strings.Compare(a.Name, b.Name) }
	if !slices.IsSortedFunc(members, byName) {
		slices.SortFunc(members, byName)
	}
	return members, wake
}

// last returns when a cluster that broke while it soaked times out at the latest; zero for never.
func (r rules) last(c *Cluster) time.Time {
	if !r.expires || c.Due.IsZero() {
		return time.Time{}
	}
	return c.Due.Add(r.deadline)
}

// patience is how long a cluster without a deadline keeps its slot while it awaits what its own spec names.
const patience = time.Minute

// awaitsOwn returns the phase of a cluster that has what the rollout gives and awaits what its own spec names. Its slot
// is not for the next one that does at once, and it holds nobody for ever.
func (r rules) awaitsOwn(c *Cluster, end, now time.Time) (p phase, until time.Time) {
	if end.IsZero() {
		end = c.AwaitsOwn.Add(patience)
	}
	if now.Before(end) {
		return flying, end
	}
	return held, time.Time{}
}

// phase returns the phase of a cluster, and when it ends by itself; zero for never.
func (r rules) phase(c *Cluster, now time.Time) (p phase, until time.Time) {
	switch c.State {
	case Succeeded:
		end, last := c.Since.Add(r.soak), r.last(c)
		switch {
		case r.soak == 0 || c.Since.IsZero() || !now.Before(end):
			return done, time.Time{}
		case !last.IsZero() && !now.Before(last):
			return timedOut, end // It breaks again and again.
		}
		return soaking, reconcile.Earliest(end, last)
	case InFlight, Failed:
		end := r.last(c)
		if r.expires && !c.Since.IsZero() {
			end = reconcile.Earliest(end, c.Since.Add(r.deadline))
		}
		if c.State == InFlight && !c.AwaitsOwn.IsZero() {
			return r.awaitsOwn(c, end, now)
		}
		switch {
		case !end.IsZero() && !now.Before(end):
			return timedOut, time.Time{}
		case c.State == InFlight:
			return flying, end
		case end.IsZero():
			return failed, time.Time{}
		}
		return failing, end
	case Awaited:
		var end time.Time
		if r.expires && !c.Since.IsZero() {
			end = reconcile.Earliest(c.Since.Add(r.deadline), r.last(c))
		}
		ended := !end.IsZero() && !now.Before(end)
		switch {
		case ended && c.Again:
			return gone, time.Time{}
		case c.HasFailed:
			return lost, time.Time{}
		case ended:
			return overdue, time.Time{}
		}
		return awaited, end
	case Pending:
	}
	if c.HasFailed {
		return returning, time.Time{}
	}
	if c.Held != "" {
		return held, time.Time{}
	}
	return waiting, time.Time{}
}
