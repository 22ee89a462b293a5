package rollout

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"

	"github.com/spokelet/spokelet/hub/rollout/planner"
	"github.com/spokelet/spokelet/internal/addonconfig"
	"github.com/spokelet/spokelet/internal/gate"
	"github.com/spokelet/spokelet/internal/message"
	"github.com/spokelet/spokelet/internal/policies"
	"github.com/spokelet/spokelet/internal/reconcile"
)

// completed returns the contents that clusters may return to.
func (f facts) completed() (all []addonconfig.Chosen) {
	if f.gate.Policy() == nil {
		return nil
	}
	for _, p := range f.gate.Policy().Status.Placements {
		for _, c := range p.Completed {
			all = append(all, gate.ContentOf(c)...)
		}
	}
	return all
}

// leftOut is the problem of a placement of which the status has not all that completed.
const leftOut = "contents that completed are left out: a status has at most 32 configurations of one, and 1000 of all"

// leavesOut says that a placement does not have all that completed.
func leavesOut(p *policies.PlacementContents) {
	if !strings.Contains(p.Problem, leftOut) {
		p.Problem = strings.TrimPrefix(p.Problem+"; "+leftOut, "; ")
	}
}

// describe returns the entry of what a placement gives.
func (u *undoing) describe(before *policies.AddOnPolicy) policies.PlacementContents {
	p := policies.PlacementContents{Placement: u.placement, Content: u.content, Problem: u.problem}
	for _, was := range before.Status.Placements {
		if was.Placement != u.placement {
			continue
		}
		if p.Completed = was.Completed; len(p.Completed) < policies.MaxCompleted && strings.Contains(was.Problem, leftOut) {
			leavesOut(&p)
		}
	}
	contents := u.from.ContentsOfRollout()
	is := func(c policies.CompletedContent) bool { return c.Content == u.content }
	switch {
	case !u.completes || len(contents) == 0 || len(p.Completed) > 0 && is(p.Completed[0]):
	case len(contents) > policies.MaxConfigurations:
		leavesOut(&p)
	default:
		others := slices.DeleteFunc(slices.Clone(p.Completed), is)
		p.Completed = append([]policies.CompletedContent{gate.CompletedContent(u.content, contents)}, others...)
		p.Completed = p.Completed[:min(len(p.Completed), policies.MaxCompleted)]
	}
	return p
}

// unlisted returns what is remembered of a placement that the add-on does not have now: the list may be edited back.
func unlisted(was policies.PlacementContents) policies.PlacementContents {
	left := strings.Contains(was.Problem, leftOut)
	if was.Content, was.Problem = "", ""; left {
		leavesOut(&was)
	}
	return was
}

// limit leaves out contents that completed, the oldest ones first, where all placements together have more
// configurations than the API server may store.
func limit(all []policies.PlacementContents) {
	configurations := 0
	for _, p := range all {
		for _, c := range p.Completed {
			configurations += len(c.Configurations)
		}
	}
	for age := policies.MaxCompleted - 1; age >= 0; age-- {
		for i := range slices.Backward(all) {
			p := &all[i]
			if configurations <= policies.MaxNames {
				return
			}
			if len(p.Completed) > age {
				configurations -= len(p.Completed[age].Configurations)
				p.Completed = p.Completed[:age]
				leavesOut(p)
			}
		}
	}
}

// concludePolicy returns the policy with the status after a plan.
func (f facts) concludePolicy(policy *policies.AddOnPolicy, p plan) *policies.AddOnPolicy {
	after := concludeGate(policy, p.gated)
	after.Status.Unused, after.Status.Problem = p.unused, f.gate.Problem()
	f.concludeUndo(policy, &after.Status, p)
	return after
}

// concludeUndo fills in what the status of a policy says of contents that completed and that were undone.
func (f facts) concludeUndo(before *policies.AddOnPolicy, status *policies.AddOnPolicyStatus, p plan) {
	if f.cma == nil { // Who may delete it, and no policy, makes nobody forget.
		status.Placements, status.Undone = before.Status.Placements, before.Status.Undone
		return
	}
	seen, renewed := sets.New[string](), sets.New[string]()
	for _, u := range p.undoings {
		if seen.Has(u.placement) {
			continue
		}
		if seen.Len() == policies.MaxPlacements {
			status.Problem = cmp.Or(status.Problem, fmt.Sprintf("it remembers what completed for %d placements, and nothing is "+
				"undone in others, such as %s", policies.MaxPlacements, u.placement))
			break
		}
		seen.Insert(u.placement)
		status.Placements = append(status.Placements, u.describe(before))
	}
	for _, was := range before.Status.Placements {
		if !seen.Has(was.Placement) && len(was.Completed) > 0 && len(status.Placements) < policies.MaxPlacements {
			status.Placements = append(status.Placements, unlisted(was))
		}
	}
	limit(status.Placements)
	for _, p := range status.Placements {
		if len(p.Completed) > 0 && p.Completed[0].Content == p.Content && !f.gate.Completed(p.Placement, p.Content) {
			renewed.Insert(p.Placement)
		}
	}
	status.Undone = f.undone(before, p.undoings, renewed)
}

// unplaced returns what is undone of the content of the add-ons that no placement installs, and when time alone may
// change that. No plan decides about them: a planner finds out whether the content completed, and nothing else.
func (f facts) unplaced() (u *undoing, wake time.Time) {
	u = f.undoing(-1)
	if u.all {
		u.clusters = len(f.members)
		return u, time.Time{}
	}
	if action, _ := f.gate.OnFailure(); action != policies.ActionStop {
		u.problem = "of add-ons that people install nothing is undone by itself, and spec.undo is"
	}
	all := planner.Placement{Completes: true, Selected: len(f.members)}
	for name, m := range f.members {
		target, c := u.wanted(f, m, -1), planner.Cluster{Name: name, Group: -1, Since: m.progressSince}
		c.Own = u.isOwn(target)
		switch {
		case !target.Admitted(m.addOn()):
			c.State, c.Held = planner.Pending, strings.Join(target.Missing, "; ")
			if until := m.notConfigured.Add(planner.Lingering); c.Held == "" && !m.notConfigured.IsZero() {
				if f.now.Before(until) {
					wake = reconcile.Earliest(wake, until)
				} else {
					c.Held = "its condition Configured says why"
				}
			}
		case m.applied():
			c.State, c.Since = planner.Succeeded, time.Time{}
		case m.progress == addonv1beta1.ProgressingReasonFailed:
			c.State = planner.Failed
		default:
			c.State = planner.InFlight
		}
		all.Clusters = append(all.Clusters, c)
	}
	made := planner.Make(planner.Fleet{Now: f.now, Placements: []planner.Placement{all}})
	u.completes = u.isComplete(made.Placements[0])
	return u, reconcile.Earliest(wake, made.Wake)
}

// undone returns the contents that are undone. What the policy undid in a placement is forgotten when a content
// completed there that is new: it counts as a try until then.
func (f facts) undone(before *policies.AddOnPolicy, undoings []*undoing, renewed sets.Set[string]) []policies.Undone {
	wanted := sets.New[string]()
	for _, u := range undoings {
		wanted.Insert(u.content)
	}
	var all []policies.Undone
	for _, was := range before.Status.Undone {
		was.Placements = slices.DeleteFunc(slices.Clone(was.Placements), renewed.Has)
		was.Tries = slices.DeleteFunc(slices.Clone(was.Tries), renewed.Has)
		gone := len(was.Placements) == 0 && !wanted.Has(was.Content) || f.gate.Retried(was.Content)
		if was.By == policies.ByPolicy && !gone { // Also while a person undoes it, who may take that back.
			was.Clusters = 0
			all = append(all, was)
		}
	}
	for _, u := range undoings {
		entry := policies.Undone{
			Content: u.content, Configurations: configurationsOf(u.from.Rolled()), By: policies.ByPolicy,
			Since: metav1.NewTime(f.now.UTC().Truncate(time.Second)),
		}
		switch {
		case slices.Contains(before.Spec.Undo, u.content):
			entry.By, entry.Action, entry.Why = policies.ByPerson, policies.ActionUndoAll, "spec.undo has it"
			if i := slices.IndexFunc(before.Status.Undone, func(o policies.Undone) bool {
				return o.Content == u.content && o.By == policies.ByPerson
			}); i >= 0 {
				entry.Since = before.Status.Undone[i].Since
			}
		case u.begins != "":
			entry.Action, entry.Why, entry.Placements = policies.ActionUndoAll, u.begins, []string{u.placement}
		case u.returned.Len() > 0:
			entry.Action, entry.Why, entry.Placements = policies.ActionUndo, "clusters failed with it", []string{u.placement}
			if u.exceeded {
				entry.Tries = entry.Placements
			}
		case !u.all:
			continue
		}
		all = merge(all, entry, u.clusters)
	}
	slices.SortStableFunc(all, func(a, b policies.Undone) int {
		return cmp.Or(a.Since.Compare(b.Since.Time), strings.Compare(a.Content, b.Content), strings.Compare(a.By, b.By))
	})
	all = all[max(0, len(all)-policies.MaxUndone):]
	names := 0
	for i := range slices.Backward(all) { // They are for people, so that those of the oldest are left out.
		most := min(policies.MaxConfigurations, max(1, policies.MaxNames-names))
		all[i].Configurations = message.Items(all[i].Configurations, most)
		names += len(all[i].Configurations)
	}
	return all
}

// merge adds what a placement undoes of a content.
func merge(all []policies.Undone, entry policies.Undone, clusters int) []policies.Undone {
	i := slices.IndexFunc(all, func(o policies.Undone) bool { return o.Content == entry.Content && o.By == entry.By })
	if i < 0 {
		all, i = append(all, entry), len(all)
	}
	is := &all[i]
	if is.Action == policies.ActionUndo && entry.Action == policies.ActionUndoAll {
		is.Action, is.Why, is.Placements = entry.Action, entry.Why, nil
	}
	if is.By == policies.ByPolicy && is.Action == entry.Action {
		is.Placements, is.Tries = union(is.Placements, entry.Placements), union(is.Tries, entry.Tries)
	}
	all[i].Clusters += int32(min(clusters, 1<<30)) //nolint:gosec // It is bounded.
	return all
}

// union returns the names of both lists, in their order.
func union(some, more []string) []string {
	for _, name := range more {
		if !slices.Contains(some, name) {
			some = append(slices.Clone(some), name)
		}
	}
	return some
}
