package rollout

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1alpha1 "open-cluster-management.io/api/cluster/v1alpha1"

	"github.com/spokelet/spokelet/hub/rollout/planner"
	"github.com/spokelet/spokelet/internal/addonapi"
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
	// how says what clusters return to. all is set where all of them do, and kept is why they do not all the same.
	how  addonconfig.Undo
	all  bool
	kept string
	// retried is set where the content may be rolled out again. exhausted holds it where too many were undone before.
	retried   bool
	exhausted gate.Verdict
	// returned are the clusters that failed with it and have what they had before.
	returned sets.Set[string]

	// completes, begins, problem and clusters are what the plan found out: whether all clusters have the content, why all
	// are to return from it from now on, why they are not although the policy asks for it, and how many are kept from it.
	completes bool
	begins    string
	problem   string
	clusters  int
}

// undoing returns what is undone of the content of a placement; -1 stands for the add-ons that no placement installs.
func (f facts) undoing(index int) *undoing {
	if f.gate.Policy() == nil {
		return nil
	}
	u := &undoing{placement: f.placementKey(index), returned: sets.New[string]()}
	u.from = f.target(&addonv1beta1.ManagedClusterAddOn{}, index)
	u.content = gate.ContentName(f.cma.Name, addonconfig.Fingerprint(u.from.Rolled()))
	u.how, u.retried = f.gate.Undo(u.placement, u.content), f.gate.Retried(u.content)
	u.all = f.gate.Undone(u.placement, u.content)
	switch {
	case u.all:
		u.kept = f.lacks[u.placement]
	default:
		u.exhausted = f.gate.Exhausted(u.placement, u.content)
	}
	return u
}

// placementKey returns the name that policies have for a placement.
func (f facts) placementKey(index int) string {
	if index < 0 {
		return policies.NoPlacement
	}
	ref := f.cma.Spec.InstallStrategy.Placements[index].PlacementRef
	return addonapi.PlacementKey(ref.Namespace, ref.Name)
}

// plans reports whether a plan decides which clusters get their target, and how they get there.
func (f facts) plans(strategy clusterv1alpha1.RolloutStrategy) bool {
	return addonconfig.Planned(strategy) || f.gate.Undoes()
}

// observeUndo finds out which contents cannot be given again.
func (r *Reconciler) observeUndo(ctx context.Context, name string, f *facts) error {
	if !f.gate.Undoes() {
		return nil
	}
	f.lacks = map[string]string{}
	for index := range f.placements {
		u := f.undoing(index)
		if len(u.how.Completed) == 0 {
			continue
		}
		lacks, err := r.Store.Lacks(ctx, name, u.from, u.how.Completed[0])
		if err != nil {
			return err
		}
		if lacks != "" {
			f.lacks[u.placement] = lacks
		}
	}
	return nil
}

// returns reports whether all clusters of the placement return.
func (u *undoing) returns() bool { return u != nil && u.all && u.kept == "" }

// each reports whether each cluster returns to something of its own: it is not known what completed for all.
func (u *undoing) each() bool { return u.returns() && len(u.how.Completed) == 0 }

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
	to, known := u.how.Return(wanted, m.references)
	if !known {
		return wanted
	}
	return wanted.Instead(to, m.references)
}

// keeps reports whether a cluster failed with the target and has what it had before, and notes that.
func (u *undoing) keeps(m *member, target addonconfig.Target) bool {
	if u == nil || u.all || u.retried || m.way.Stage != addonconfig.ReasonUndone || !target.GivesAll(m.wayOf) {
		return false
	}
	u.returned.Insert(m.cluster)
	return true
}

// has reports whether keeps noted a cluster.
func (u *undoing) has(cluster string) bool { return u != nil && u.returned.Has(cluster) }

// held returns why a cluster that does not have a content that was undone gets nothing in its place.
func (u *undoing) held(m *member) string {
	if u == nil || !u.all {
		return ""
	}
	why := u.kept
	if _, known := u.how.Return(u.from, m.references); why == "" && !known {
		why = "no content completed before it"
	}
	if why == "" {
		return ""
	}
	return causes.WaitsForTurn + "content " + u.content + " was undone, and " + why
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
			u.problem = "content " + u.content + " was undone, and its clusters keep what they have: " + u.kept
		}
		return time.Time{}
	}
	u.completes = result.Counts.Complete()
	action, after := f.gate.OnFailure()
	for _, c := range of.Clusters {
		a, decided := p.admissions[c.Name]
		if !decided || c.Leaving {
			continue
		}
		if u.has(c.Name) {
			u.clusters++
			a.undo, a.way = true, addonconfig.Way{}
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
	switch paused := f.gate.Paused(); {
	case paused.Held != "":
		a.notUndone = strings.TrimPrefix(paused.Held, causes.WaitsForTurn)
	case after > 0 && !known: // Its status is about to say so.
	case after > 0 && f.now.Before(at):
		a.notUndone = "it returns at " + at.UTC().Format(time.RFC3339)
		return at
	default:
		a.undo = true
	}
	return time.Time{}
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
	if len(result.Failing) == 0 || f.gate.Paused().Held != "" {
		return time.Time{}
	}
	why := f.lacks[u.placement]
	if len(u.how.Completed) == 0 {
		why = "no content completed before it"
	}
	if why != "" {
		u.problem = "content " + u.content + " is not undone: " + why
		return time.Time{}
	}
	since := make([]time.Time, 0, len(result.Failing))
	for _, cluster := range result.Failing {
		at := f.now // Its status is about to say so, or it has none.
		if m := f.members[cluster]; m != nil && m.way.Counts() {
			at = m.way.Since
		}
		since = append(since, at)
	}
	slices.SortFunc(since, time.Time.Compare)
	if at := since[min(result.Tolerated, len(since)-1)].Add(after); f.now.Before(at) {
		return at
	}
	u.begins = result.FailingOf
	return time.Time{}
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
		p.Completed = append([]policies.CompletedContent{gate.Completed(u.content, contents)}, others...)
		p.Completed = p.Completed[:min(len(p.Completed), policies.MaxCompleted)]
	}
	return p, isNew
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

// unplaced returns what is undone of the content of the add-ons that no placement installs, which no plan decides about.
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
			Content: u.content, Configurations: configurationsOf(u.from.Rolled()), Since: metav1.NewTime(f.now.UTC().Truncate(time.Second)), By: policies.ByPolicy,
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
