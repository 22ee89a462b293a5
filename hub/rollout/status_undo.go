package rollout

import (
	"cmp"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/spokelet/spokelet/internal/addonapi"
	"github.com/spokelet/spokelet/internal/addonconfig"
	"github.com/spokelet/spokelet/internal/gate"
	"github.com/spokelet/spokelet/internal/policies"
)

// completed returns the contents that clusters may return to.
func (f facts) completed() (all []addonconfig.Chosen) {
	if f.cma == nil || f.gate.Policy() == nil {
		return nil
	}
	for _, p := range f.gate.Policy().Status.Placements {
		for _, c := range p.Completed {
			all = append(all, gate.ContentOf(c)...)
		}
	}
	return all
}

// describe returns the entry of what a placement gives, and whether a content is new in it that completed.
func (u *undoing) describe(before *policies.AddOnPolicy) (p policies.PlacementContents, isNew bool) {
	p = policies.PlacementContents{Placement: u.placement, Content: u.content, Problem: u.problem}
	for _, was := range before.Status.Placements {
		if was.Placement == u.placement {
			p.Completed = was.Completed
		}
	}
	contents := u.from.ContentsOfRollout()
	if !u.completes || len(contents) > policies.MaxConfigurations {
		return p, false
	}
	is := func(c policies.CompletedContent) bool { return c.Content == u.content }
	isNew = !slices.ContainsFunc(p.Completed, is)
	if isNew || !is(p.Completed[0]) {
		others := slices.DeleteFunc(slices.Clone(p.Completed), is)
		p.Completed = append([]policies.CompletedContent{gate.CompletedContent(u.content, contents)}, others...)
		p.Completed = p.Completed[:min(len(p.Completed), policies.MaxCompleted)]
	}
	return p, isNew
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
	if f.cma == nil {
		return
	}
	undoings, seen, isNew := p.undoings, sets.New[string](), false
	if !addonapi.InstalledByPlacements(f.cma) {
		undoings = []*undoing{f.unplaced()}
	}
	for _, u := range undoings {
		if seen.Has(u.placement) || seen.Len() == policies.MaxPlacements {
			continue
		}
		seen.Insert(u.placement)
		described, is := u.describe(before)
		isNew = isNew || is
		status.Placements = append(status.Placements, described)
	}
	status.Undone = f.undone(before, undoings, isNew)
}

// unplaced returns what is undone of the content of the add-ons that no placement installs. No plan decides about them.
func (f facts) unplaced() *undoing {
	u := f.undoing(-1)
	if u.all {
		u.clusters = len(f.members)
		return u
	}
	u.completes = len(f.members) > 0
	for _, m := range f.members {
		u.completes = u.completes && m.applied() && u.wanted(f, m, -1).Admitted(m.addOn())
	}
	return u
}

// undone returns the contents that are undone. What the policy undid is forgotten when a content completed that is new,
// unless a placement asks for it still: it counts as a try until then.
func (f facts) undone(before *policies.AddOnPolicy, undoings []*undoing, isNew bool) []policies.Undone {
	wanted := sets.New[string]()
	for _, u := range undoings {
		wanted.Insert(u.content)
	}
	var all []policies.Undone
	for _, was := range before.Status.Undone {
		gone := isNew && !wanted.Has(was.Content) || f.gate.Retried(was.Content)
		if was.By == policies.ByPolicy && !gone && !slices.Contains(before.Spec.Undo, was.Content) {
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
			entry.Action, entry.Why = policies.ActionUndo, "clusters failed with it"
		case !u.all:
			continue
		}
		all = merge(all, entry, u.clusters)
	}
	slices.SortStableFunc(all, func(a, b policies.Undone) int {
		return cmp.Or(a.Since.Compare(b.Since.Time), strings.Compare(a.Content, b.Content))
	})
	return all[max(0, len(all)-policies.MaxUndone):]
}

// merge adds what a placement undoes of a content.
func merge(all []policies.Undone, entry policies.Undone, clusters int) []policies.Undone {
	i := slices.IndexFunc(all, func(o policies.Undone) bool { return o.Content == entry.Content })
	if i < 0 {
		all, i = append(all, entry), len(all)
	}
	if is := &all[i]; is.Action == policies.ActionUndo && entry.Action == policies.ActionUndoAll {
		is.Action, is.Why, is.Placements = entry.Action, entry.Why, entry.Placements
	} else if is.By == policies.ByPolicy {
		for _, placement := range entry.Placements {
			if !slices.Contains(is.Placements, placement) {
				is.Placements = append(slices.Clone(is.Placements), placement)
			}
		}
	}
	all[i].Clusters += int32(min(clusters, 1<<30)) //nolint:gosec // It is bounded.
	return all
}
