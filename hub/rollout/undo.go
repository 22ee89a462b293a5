package rollout

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/sets"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1alpha1 "open-cluster-management.io/api/cluster/v1alpha1"

	"github.com/spokelet/spokelet/hub/rollout/planner"
	"github.com/spokelet/spokelet/internal/addonconfig"
	"github.com/spokelet/spokelet/internal/causes"
	"github.com/spokelet/spokelet/internal/gate"
	"github.com/spokelet/spokelet/internal/policies"
	"github.com/spokelet/spokelet/internal/reconcile"
)

// undoing is what is undone of the content of a placement: for all of its clusters, or for those that failed with it.
// Nothing is remembered: the policy says what all clusters return from, and each cluster what it returned from. A nil
// undoing is of an add-on without a policy.
type undoing struct {
	// placement and content are the names that the policy has for them, and from is the target that the specs ask for.
	placement, content string
	from               addonconfig.Target
	// news are the contents of it that are not in what clusters return to.
	news []addonconfig.Chosen
	// how says what clusters return to, and rules what one does on which something was undone. all is set where all of
	// them do, and kept is why they do not all the same.
	how   addonconfig.Undo
	rules gate.Gate
	all   bool
	kept  string
	// retried is set where the content may be rolled out again. exhausted holds it where too many were undone before.
	// remembered is set where the policy has it as undone.
	retried, remembered bool
	exhausted           gate.Verdict
	// returned are the clusters that failed with it and have what they had before.
	returned sets.Set[string]

	// completes, exceeded, begins, problem and clusters are what the plan found out: whether the content completed,
	// whether it failed on more clusters than the strategy tolerates, why all are to return from it from now on, why they
	// are not although the policy asks for it, and how many are kept from it.
	completes bool
	exceeded  bool
	begins    string
	problem   string
	clusters  int
}

// undoing returns what is undone of the content of a placement; -1 stands for the add-ons that no placement installs.
func (f facts) undoing(index int) *undoing {
	if f.gate.Policy() == nil {
		return nil
	}
	u := &undoing{placement: gate.KeyOfPlacement(f.cma, index), returned: sets.New[string]()}
	u.from = f.target(&addonv1beta1.ManagedClusterAddOn{}, index)
	u.content = gate.NameOfTarget(f.cma.Name, u.from)
	u.rules, u.how, u.retried = f.gate, f.gate.Undo(u.placement, u.content, nil), f.gate.Retried(u.content)
	u.all, u.remembered = f.gate.Undone(u.placement, u.content), f.gate.Remembers(u.content)
	u.news = u.from.ContentsOfRollout()
	if len(u.how.Completed) > 0 {
		u.news = slices.DeleteFunc(u.news, func(c addonconfig.Chosen) bool { return slices.Contains(u.how.Completed[0], c) })
	}
	switch {
	case u.all:
		u.kept = f.lacks[u.placement]
	default:
		u.exhausted = f.gate.Exhausted(u.placement, u.content)
	}
	return u
}

// plans reports whether a plan decides which clusters get their target, and how they get there.
func (f facts) plans(strategy clusterv1alpha1.RolloutStrategy) bool {
	return addonconfig.Planned(strategy) || f.gate.Undoes()
}

// returns reports whether all clusters of the placement return.
func (u *undoing) returns() bool { return u != nil && u.all && u.kept == "" }

// each reports whether each cluster returns to something of its own: it is not known what completed for all.
func (u *undoing) each() bool { return u.returns() && len(u.how.Completed) == 0 }

// howOf says what a cluster returns to: never to what its status says that it returned from.
func (u *undoing) howOf(m *member) addonconfig.Undo {
	if len(m.undone) == 0 {
		return u.how
	}
	return u.rules.Undo(u.placement, u.content, m.undone)
}

// apart reports whether a cluster may return to something else than the others.
func (u *undoing) apart(m *member) bool { return u.each() || u.returns() && len(m.undone) > 0 }

// common returns the target of clusters without configurations of their own, of which wanted is what the specs ask for.
func (u *undoing) common(wanted addonconfig.Target) addonconfig.Target {
	if !u.returns() || u.each() {
		return wanted
	}
	return wanted.Instead(u.how.Completed[0], nil)
}

// target returns the target of a cluster, of which wanted is what the specs ask for.
func (u *undoing) target(wanted addonconfig.Target, m *member) addonconfig.Target {
	if !u.returns() {
		return wanted
	}
	to, known := u.howOf(m).Return(wanted, m.references)
	if !known {
		return wanted
	}
	return wanted.Instead(to, m.references)
}

// keeps reports whether a cluster failed with the target and has what it had before, and notes that. Its status says so
// or, of an add-on before this one, its way.
func (u *undoing) keeps(m *member, target addonconfig.Target, before way) bool {
	if u == nil || u.all || u.retried {
		return false
	}
	is := m.way.Stage == addonconfig.ReasonUndone && target.GivesAll(m.wayOf)
	remembers := u.remembered && slices.Contains(m.undone, u.content)
	if !is && !before.undone && !remembers {
		return false
	}
	u.returned.Insert(m.cluster)
	return true
}

// isOwn reports whether a cluster has what is new in the content by the spec of its own add-on.
func (u *undoing) isOwn(target addonconfig.Target) bool { return u != nil && target.NamesOwn(u.news) }

// isComplete reports whether the content completed: by clusters that have it from the rollout, or where nothing holds
// it, and never while it waits for a person.
func (u *undoing) isComplete(r planner.Result) bool {
	return r.Settled && u.exhausted.Held == "" && (r.Shown || u.rules.Lets(u.content))
}

// isExhausted reports whether too many contents were undone before.
func (u *undoing) isExhausted() bool { return u != nil && !u.all && u.exhausted.Held != "" }

// has reports whether keeps noted a cluster.
func (u *undoing) has(cluster string) bool { return u != nil && u.returned.Has(cluster) }

// held returns why a cluster that does not have a content that was undone gets nothing in its place.
func (u *undoing) held(m *member) string {
	if u == nil || !u.all {
		return ""
	}
	why, how := u.kept, u.howOf(m)
	if _, known := how.Return(u.from, m.references); why == "" && !known {
		why = gate.Nothing(how)
	}
	if why == "" {
		return ""
	}
	return gate.WasUndone(u.content, why)
}

// verdict returns what holds a cluster where neither windows nor approvals do: one that returns was well with what it
// gets, and where too many contents failed the next one is for a person to begin.
func (u *undoing) verdict(f facts, cluster string, index int) (v gate.Verdict, decided bool) {
	m := f.members[cluster]
	switch {
	case u == nil || m == nil:
		return gate.Verdict{}, false
	case !u.all:
		return u.exhausted, u.exhausted.Held != ""
	}
	return f.gate.Paused(), u.wanted(f, m, index).Admitted(m.addOn())
}

// wanted returns what the specs ask for on a cluster.
func (u *undoing) wanted(f facts, m *member, index int) addonconfig.Target {
	if len(m.configs) == 0 {
		return u.from
	}
	return f.target(m.addOn(), index)
}

// undo decides which clusters of a placement return from what they failed with, and whether all do from now on. It
// returns when time alone may change that.
func (p plan) undo(f facts, of planner.Placement, result planner.Result, index int) (wake time.Time) {
	u := p.undoings[index]
	switch {
	case u == nil:
		return time.Time{}
	case u.all:
		if u.clusters = result.Counts.Configured; u.kept != "" {
			u.problem = u.remark()
		}
		return time.Time{}
	}
	u.completes, u.exceeded = u.isComplete(result), result.Exceeded
	action, after := f.gate.OnFailure()
	for _, c := range of.Clusters {
		a, decided := p.admissions[c.Name]
		if !decided || c.Leaving {
			continue
		}
		if u.has(c.Name) {
			u.clusters++
			a.undo, a.way = true, addonconfig.Way{}
			if m, paused := f.members[c.Name], f.gate.Paused(); paused.Held != "" && len(m.references) == 0 {
				a.granted, a.reason = false, paused.Held // It is created again, and begins when the pause ends.
			}
		} else if m := f.members[c.Name]; action == policies.ActionUndo && !u.retried && a.granted && a.way.Counts() {
			var until time.Time
			if target := u.wanted(f, m, index); target.Admitted(m.addOn()) {
				until = f.undoFailed(&a, m, target, after)
			}
			wake = reconcile.Earliest(wake, until)
		}
		p.admissions[c.Name] = a
	}
	if action == policies.ActionUndoAll && !u.retried {
		wake = reconcile.Earliest(wake, f.undoAll(u, of, result, after))
	}
	return wake
}

// undoFailed decides whether a cluster that failed with its target returns from it, after it has failed for a time.
func (f facts) undoFailed(
	a *admission, m *member, target addonconfig.Target, after time.Duration,
) (wake time.Time) {
	since, known := m.failedSince(target)
	at := since.Add(after)
	switch paused := f.whyPaused(); {
	case paused != "":
		a.notUndone = paused
	case after > 0 && !known: // Its status is about to say so.
	case after > 0 && f.now.Before(at):
		a.notUndone = "it returns at " + at.UTC().Format(time.RFC3339)
		return at
	default:
		a.undo = true
	}
	return time.Time{}
}

// whyPaused returns why nothing is undone while a person looks; empty where the policy is not paused.
func (f facts) whyPaused() string {
	return strings.TrimPrefix(f.gate.Paused().Held, causes.WaitsForTurn)
}

// failedSince returns since when the status says that a cluster failed with its target.
func (m *member) failedSince(target addonconfig.Target) (since time.Time, known bool) {
	known = m.way.Counts() && target.GivesAll(m.wayOf)
	return m.way.Since, known
}

// undoAll decides whether all clusters of a placement return, because more failed than its strategy tolerates, each for
// a time.
func (f facts) undoAll(
	u *undoing, of planner.Placement, result planner.Result, after time.Duration,
) (wake time.Time) {
	if !addonconfig.Planned(of.Strategy) {
		u.problem = "nothing is undone: strategy All tolerates all failures, so that UndoAll never acts; use Undo"
		return time.Time{}
	}
	if len(result.Failing) == 0 {
		return time.Time{}
	}
	why, paused := f.lacks[u.placement], f.whyPaused()
	switch {
	case f.gate.Completed(u.placement, u.content): // One that joins later takes it from none.
		why = "it completed before, and those that have it keep it"
	case len(u.how.Completed) == 0:
		why = gate.NothingBefore
	case len(u.from.Rolled()) > policies.MaxConfigurations:
		why = fmt.Sprintf("it has more than %d configurations, so that it is not known whether it completed before",
			policies.MaxConfigurations)
	case paused != "":
		why = paused
	}
	since, known := f.failedAt(result)
	at := since.Add(after)
	switch {
	case why != "":
		u.problem = "content " + u.content + " is not undone: " + why
		return time.Time{}
	case f.now.Before(at):
		when := at.UTC().Format(time.RFC3339)
		if !known { // Another instant in each pass would be another write.
			when = "the end of spec.onFailure.after"
		}
		u.problem = "content " + u.content + " is undone at " + when + ": " + result.FailingOf
		return at
	}
	u.begins = result.FailingOf
	return time.Time{}
}

// failedAt returns since when more clusters have failed than the strategy tolerates, and whether all of them say so.
func (f facts) failedAt(result planner.Result) (at time.Time, known bool) {
	since := make([]time.Time, 0, len(result.Failing))
	known = true
	for _, cluster := range result.Failing {
		at := f.now // Its status is about to say so.
		if m := f.members[cluster]; m != nil && m.way.Counts() {
			at = m.way.Since
		} else if w := f.ways[cluster]; (m == nil || m.deleting) && w.failed && !w.since.IsZero() {
			at = w.since
		} else {
			known = false
		}
		since = append(since, at)
	}
	slices.SortFunc(since, time.Time.Compare)
	return since[min(result.Tolerated, len(since)-1)], known
}

// remark tells the author of a placement that its clusters do not have what the specs ask for.
func (u *undoing) remark() string {
	switch {
	case u == nil || !u.all:
		return ""
	case u.kept != "":
		return "content " + u.content + " was undone, and its clusters keep what they have: " + u.kept
	}
	return "content " + u.content + " was undone, and its clusters return to what completed before"
}
