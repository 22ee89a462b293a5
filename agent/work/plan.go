package work

import (
	"fmt"
	"slices"
	"time"

	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/spokelet/spokelet/agent/work/apply"
	"github.com/spokelet/spokelet/agent/work/manifest"
	"github.com/spokelet/spokelet/agent/work/watch"
	"github.com/spokelet/spokelet/internal/reconcile"
)

// planAll plans a pass. It is pure: the same input gives the same plan.
func planAll(in *input) plan {
	p := plan{in: in, steps: make([]apply.Step, len(in.manifests))}
	order := make([]int, len(in.manifests))
	for i := range in.manifests {
		order[i] = i
		p.steps[i] = planStep(in, i)
		if p.steps[i].Action.Writes() {
			p.record = append(p.record, in.manifests[i].Entry(""))
		}
	}
	rank := func(i int) int { return stepRank(in.manifests[i].GVK.Kind) }
	slices.SortStableFunc(order, func(a, b int) int { return rank(a) - rank(b) })
	for len(order) > 0 {
		end := slices.IndexFunc(order, func(i int) bool { return rank(i) != rank(order[0]) })
		if end < 0 {
			end = len(order)
		}
		p.ranks = append(p.ranks, order[:end])
		order = order[end:]
	}
	return p
}

// stepRank returns the place of a kind in a pass. It is that of its rank, but bindings follow the roles of their rank:
// an executor may bind what a role allows only when the role exists.
func stepRank(kind string) int {
	rank := 2 * manifest.Rank(kind)
	if kind == "RoleBinding" || kind == "ClusterRoleBinding" {
		rank++
	}
	return rank
}

// planStep plans one manifest.
func planStep(in *input, i int) apply.Step {
	m, o := &in.manifests[i], &in.objects[i]
	s := apply.Step{Manifest: m, Raw: in.raw[i], Known: o.known, Frozen: o.frozen, Question: o.question}
	switch {
	case m.Unserved():
		s.Action, s.Reason = apply.Unserved, m.Err.Error()
		return s
	case m.Err != nil:
		s.Action, s.Reason = apply.Invalid, m.Err.Error()
		return s
	}
	known := &s.Known
	if s.Wake = recheckAt(o, m.ID()); !s.Wake.IsZero() && !in.now.Before(s.Wake) {
		known.Drift, s.Wake = max(known.Drift, watch.Modified), time.Time{}
	}
	request := watch.Applied{Desired: m.Desired, Owner: in.owner}
	if o.frozen && (!known.InSync(request) || !unchanged(known, m)) {
		s.Mode = watch.ReadFrozen
	}
	if o.decision != nil {
		s.Wake = reconcile.Earliest(s.Wake, o.decision.Recheck)
		if s.Denial = apply.DenialOf(*o.decision, o.frozen); s.Denial != nil {
			s.Mode = watch.ReadDenied
		}
	}
	request.Mode = s.Mode
	if s.Denial != nil && s.Denial.ReadErr != nil {
		s.Action, s.Reason = apply.Forbidden, s.Denial.ReadErr.Error()
		return s
	}
	if reason, wake := postponed(in.now, &s, request); reason != "" {
		s.Action, s.Reason, s.Wake = apply.Skip, reason, reconcile.Earliest(s.Wake, wake)
		return s
	}
	s.StatusFirst = known.InSync(request) && known.Drift <= watch.StatusOnly
	s.Action, s.Reason = action(&s, request)
	if o.unwatched { // nothing else leads to the pass that reads it the next time
		asked := watch.State{Requested: in.now}
		s.Wake = reconcile.Earliest(s.Wake, asked.RecheckAt(m.ID()))
	}
	if s.Action == apply.Blocked && s.Denial == nil {
		s.Denial = &apply.Denial{Err: manifest.Failed(s.Reason), Final: true}
	}
	return s
}

// recheckAt is when an object is read again without an event: after a failure, when its rules were not evaluated to
// their end, and when no watch covers it; zero for all others.
func recheckAt(o *object, id manifest.ID) time.Time {
	state := &o.known.State
	if again := state.RetryAt(id); !again.IsZero() {
		return again
	}
	if state.Requested.IsZero() || !o.unwatched {
		return time.Time{}
	}
	return state.RecheckAt(id)
}

// unchanged reports whether nothing was observed since the last request, which evaluated the same rules.
func unchanged(known *apply.Known, m *manifest.Manifest) bool {
	return known.Drift == watch.Unchanged && known.State.Rules() == m.Reads
}

const (
	// feedbackPause is the least time between two reads of an object of which only the status changes.
	feedbackPause = 250 * time.Millisecond
	// perCost is the pause for one unit of the cost of rules, which take about a tenth of it to evaluate: so no rule
	// keeps a processor busy for good.
	perCost = 10 * time.Microsecond
)

// pauseAfter is the least time between two reads of an object of which only the status changes.
func pauseAfter(state *watch.State) time.Duration {
	if state.Feedback == nil {
		return feedbackPause
	}
	return feedbackPause + time.Duration(state.Feedback.Cost)*perCost
}

// postponed returns why nothing is sent about an object now, and when that may change; the reason is empty when
// something is sent. It takes a read of a changed object from its limit.
func postponed(now time.Time, s *apply.Step, request watch.Applied) (reason string, wake time.Time) {
	known := &s.Known
	state := &known.State
	switch {
	case known.Answered(request) && unchanged(known, s.Manifest):
		if state.Failed != nil {
			return "failed for good: nothing changed since", time.Time{}
		}
		return "in sync", time.Time{}
	case known.Drift == watch.StatusOnly && known.InSync(request):
		if ready := state.Requested.Add(pauseAfter(state)); now.Before(ready) {
			return "only the status changed: rules are evaluated later", ready
		}
	case known.Drift == watch.Modified && known.Answered(request):
		left, until, ok := state.Reads.Spend(now)
		if !ok {
			return "changes too often: read later", until
		}
		state.Reads = left
	}
	return "", time.Time{}
}

// action holds what is done about an object for which a request is due, and why.
func action(s *apply.Step, request watch.Applied) (apply.Action, string) {
	switch {
	case s.Denial != nil:
		return apply.Blocked, s.Denial.Err.Error()
	case s.Frozen:
		return apply.Frozen, "complete: read only"
	}
	reason := cause(&s.Known, request)
	switch kind := s.Manifest.Options.Strategy.Type; kind {
	case workv1.UpdateStrategyTypeUpdate:
		return apply.Update, reason
	case workv1.UpdateStrategyTypeCreateOnly:
		return apply.Create, reason
	case workv1.UpdateStrategyTypeServerSideApply:
		return apply.ServerSideApply, reason
	case workv1.UpdateStrategyTypeReadOnly:
		return apply.Read, reason
	default:
		return apply.Blocked, fmt.Sprintf(
			"the update strategy %q is unknown; use Update, CreateOnly, ServerSideApply or ReadOnly", kind)
	}
}

// cause is why a request about an object is due.
func cause(known *apply.Known, request watch.Applied) string {
	state := &known.State
	switch {
	case state.Requested.IsZero() && known.Listed:
		return "the agent has not read the object yet"
	case state.Requested.IsZero():
		return "the object is new"
	case !known.Answered(request):
		return "the desired state changed, or was not applied yet"
	case known.Drift == watch.Deleted:
		return "deleted on the spoke"
	case known.Drift == watch.Modified && state.Failed != nil:
		return "failed before: retried"
	case known.Drift == watch.Modified:
		return "modified on the spoke"
	case known.Drift == watch.StatusOnly:
		return "the status changed: rules are evaluated"
	}
	return "the rules changed"
}

// phase decides what the pass does.
func (f *facts) phase() phase {
	switch {
	case f.offline && f.work == nil:
		return phaseUnknown
	case f.offline && !f.stale:
		return phaseOffline
	case f.work == nil && f.applied != nil:
		return phaseAbandon
	case f.work == nil:
		return phaseGone
	case f.stale || f.waits():
		return phaseStale
	case !f.work.DeletionTimestamp.IsZero():
		return phaseDelete
	case f.applied != nil && !f.applied.DeletionTimestamp.IsZero():
		return phaseRestart
	case f.standing == standingUnanswered:
		return phaseKeep
	}
	return phaseApply
}
