package rollout

import (
	"cmp"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/sets"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"

	"github.com/spokelet/spokelet/hub/fleet"
	"github.com/spokelet/spokelet/hub/rollout/planner"
	"github.com/spokelet/spokelet/internal/addonconfig"
	"github.com/spokelet/spokelet/internal/message"
	"github.com/spokelet/spokelet/internal/reconcile"
)

// survey looks at the clusters of one placement, one after the other.
type survey struct {
	f     facts
	index int
	soak  time.Duration
	// deadline is how long a cluster may take; zero for ever.
	deadline time.Duration
	leaving  map[string]fleet.Group
	// common is the target of add-ons without configs of their own, which are most, so that it is computed once.
	common addonconfig.Target
	// of are the targets of the placement, and ways and looked those of all placements.
	of     *targets
	ways   map[string]way
	looked sets.Set[string]
	// waves say in which wave of the strategy a cluster is.
	waves planner.Waves

	placement planner.Placement
	stuck     stuckAddOns
	// undo is what the placement returns to; nil where the add-on has no policy.
	undo *undoing
	// gated are the contents that clusters wait for because of the gate, and gateWake when that may change by itself.
	gated    contentsOf
	gateWake time.Time
}

// placement returns the placement at index with the clusters that it owns, and adds their targets and ways, and those
// of the earlier ways that it looked at.
func (f facts) placement(
	index int, of *targets, ways map[string]way, looked sets.Set[string],
) survey {
	strategy, selection := f.cma.Spec.InstallStrategy.Placements[index], f.placements[index]
	s := survey{
		f: f, index: index, soak: addonconfig.MinSuccessTime(strategy.RolloutStrategy),
		deadline: planner.Deadline(strategy.RolloutStrategy), of: of, ways: ways, looked: looked,
		waves:  planner.WavesOf(strategy.RolloutStrategy),
		common: f.target(&addonv1beta1.ManagedClusterAddOn{}, index), gated: contentsOf{}, undo: f.undoing(index),
		placement: planner.Placement{
			Strategy: strategy.RolloutStrategy, GroupSize: groupSize(selection.Placement),
			Selected: len(selection.Names), Clusters: make([]planner.Cluster, 0, len(selection.Names)),
		},
	}
	s.common, s.placement.Undoes = s.undo.common(s.common), s.undo.returns()
	s.placement.Completes = s.undo != nil
	of.common = addonconfig.Fingerprint(s.common.Rolled())
	s.leaving, s.stuck.recheck = selection.Leaving(f.now)
	for _, cluster := range selection.Names {
		s.look(cluster, selection.Groups[cluster])
	}
	for cluster, group := range s.leaving { // One that is on its way there keeps its place, and one that failed counts.
		s.look(cluster, group)
	}
	return s
}

// look looks at a cluster in a decision group.
func (s *survey) look(cluster string, group fleet.Group) {
	if !s.f.owns(s.index, cluster) {
		return
	}
	_, leaves := s.leaving[cluster]
	c := planner.Cluster{Name: cluster, Group: group.Index, GroupName: group.Name, Leaving: leaves}
	m, found := s.f.members[cluster]
	if found && !m.deleting {
		s.add(c, m.uid, s.judge(m, &c))
		return
	}
	before := s.before(cluster)
	switch {
	case !leaves && s.f.served[cluster], leaves && before.failed: // It is installed soon, or again.
		c.State, c.Since = planner.Awaited, m.goes()
		if found { // It goes, and a finalizer may keep it for long.
			before = s.way(m, s.f.target(m.addOn(), s.index))
		}
		s.add(c, "", before)
	case before.failed && !found: // It does not count until it is served again.
		s.looked.Insert(cluster)
		s.ways[cluster] = before.goesOn(s.of.common, "", s.f.now)
	}
}

// before returns the way that the plan before this one left. That a cluster returned counts as long as nobody says
// otherwise, and about the same target.
func (s *survey) before(cluster string) way {
	w := s.f.ways[cluster]
	if w.undone && (w.target != s.of.common || s.undo == nil || s.undo.all || s.undo.retried) {
		return way{}
	}
	return w
}

// way returns the way of a cluster before this plan. Of an add-on that this process has not planned yet, its status
// says that. One that awaits what its own spec names, and was late before it did, failed where the status says nothing:
// it is of an earlier version, or of a hub manager that died before it wrote that.
func (s *survey) way(m *member, target addonconfig.Target) way {
	before := s.before(m.cluster)
	if _, planned := s.f.admitted[m.cluster]; planned || before.target != "" {
		return before
	}
	w := way{target: s.of.common, addOn: m.uid, since: m.progressSince}
	stage := m.way.Stage
	if stage != "" && !target.GivesAll(m.wayOf) {
		stage = ""
	}
	if stage == "" || target.Gives(m.wayOf) {
		w.given = s.of.target(m.cluster)
		w.had = w.given == s.of.common
	}
	switch stage {
	case addonconfig.ReasonFailed, addonconfig.ReasonUnavailable:
		w.failed, w.broke, w.fell = true, true, stage == addonconfig.ReasonUnavailable
	case addonconfig.ReasonTimedOut: // Perhaps with the add-on before: what is known is that it was late.
		w.failed, w.since = true, reconcile.Earliest(m.progressSince, s.f.now.Add(-s.deadline))
	case addonconfig.ReasonAwaits:
		w.awaits = m.way.Since
	case addonconfig.ReasonAgain:
		w.since, w.awaits, w.knew = m.way.Since, m.way.Since, true
	default:
		if w.failed = m.way.Stage == "" && target.AwaitsOwn && s.isLate(m, target); !w.failed {
			return before
		}
	}
	return w
}

// isLate reports whether an add-on was late before it began to await what its own spec names, which the condition
// Configured says.
func (s *survey) isLate(m *member, target addonconfig.Target) bool {
	due := m.progressSince
	if target.Gives(m.noted) { // It broke: what it had until then counts.
		due = reconcile.Earliest(due, m.due(s.soak))
	}
	has := target.Gives(target.Contents(m.references)) && !m.applied()
	return has && s.deadline > 0 && !due.IsZero() && !m.notConfigured.Before(due.Add(s.deadline))
}

// judge fills in what the add-on of a cluster says about it, and returns its way before this plan.
func (s *survey) judge(m *member, c *planner.Cluster) way {
	target := s.common
	if len(m.configs) > 0 || len(target.Waiting) > 0 || s.undo.apart(m) {
		target = s.undo.target(s.f.target(m.addOn(), s.index), m)
		s.of.set(c.Name, addonconfig.Fingerprint(target.Rolled()))
	}
	if s.undo.keeps(m, target, s.before(m.cluster)) {
		c.State = planner.Failed
		s.stuck.add(m, false, s.f.now)
		return way{}
	}
	before := s.way(m, target)
	c.Own = s.undo.isOwn(target)
	c.State, c.Since, c.Due = s.state(m, target, before)
	c.Broken, c.Fell = m.broken(), c.State == planner.Failed && !m.unhealthySince.IsZero()
	if target.AwaitsOwn {
		c.AwaitsOwn = s.f.now
	}
	awaitsTurn := c.State == planner.Pending && len(target.Waiting) > 0 && !target.Admitted(m.addOn())
	c.Held = cmp.Or(s.f.keeps(s.index, m), heldBy(target, awaitsTurn))
	waits := c.State == planner.Pending && c.Held == ""
	if waits && !c.Leaving {
		if c.Held = s.undo.held(m); c.Held != "" {
			c.Gated = true
		} else {
			waits = s.askGate(c, target)
		}
	}
	if c.Leaving {
		c.Held = "keeps what it has while the decisions of placement " + s.f.placements[s.index].Key.String() + " change"
		return before
	}
	s.stuck.add(m, waits, s.f.now)
	return before
}

// askGate holds a cluster that may not begin to change to its target. It reports whether it is known what ends that.
func (s *survey) askGate(c *planner.Cluster, target addonconfig.Target) bool {
	verdict := s.verdict(c.Name)
	s.gateWake = reconcile.Earliest(s.gateWake, verdict.Wake)
	if c.Held = verdict.Held; c.Held != "" {
		c.Depends = verdict.Depends
		// An agent that takes its time zone back lets no later group wait for ever.
		c.Gated = !verdict.Unusable && !verdict.Depends
		s.gated.add(s.waited(c.Name), target.Rolled())
	}
	return !verdict.Unusable
}

// add adds a cluster to the placement, with its way before this plan.
func (s *survey) add(c planner.Cluster, addOn types.UID, before way) {
	if _, had := s.f.ways[c.Name]; had {
		s.looked.Insert(c.Name)
	}
	if s.undo.has(c.Name) { // It counts as a failure as long as it is not to be tried again.
		s.placement.Clusters = append(s.placement.Clusters, c)
		s.ways[c.Name] = way{target: s.of.common, addOn: addOn, failed: true, undone: true}
		return
	}
	w := before.goesOn(s.of.common, addOn, s.f.now)
	if next, onWay := w.follow(&c, s.of.target(c.Name), s.soak, s.f.now); onWay {
		s.ways[c.Name] = next
	}
	s.placement.Clusters = append(s.placement.Clusters, c)
}

func (f facts) target(addOn *addonv1beta1.ManagedClusterAddOn, index int) addonconfig.Target {
	return addonconfig.NewTarget(addonconfig.Inputs{AddOn: addOn, CMA: f.cma, Placement: index, States: f.states})
}

// heldBy returns why an add-on cannot be admitted to a target that is not complete; "" when it can. One that awaits
// what the rollout gives gets that in its turn, though its own spec names what is not known yet: the manager of the
// add-on reports only what the status names.
func heldBy(target addonconfig.Target, awaitsTurn bool) string {
	const most = 5
	switch {
	case len(target.Missing) > 0:
		return message.List(target.Missing, most, "; ")
	case awaitsTurn && !target.AwaitsRolled:
		return ""
	}
	return message.List(target.Waiting, most, "; ")
}

// state returns the state of an add-on with regard to its target, and since when. due is when an add-on that has the
// target, and broke while it soaked, should have soaked at first; zero for any other. before is its way before this
// plan.
func (s *survey) state(
	m *member, target addonconfig.Target, before way,
) (state planner.State, since, due time.Time) {
	same := addonconfig.SameDesired(m.references, target.References)
	if !same && (len(m.references) == 0 || !target.Admitted(m.addOn())) {
		if earlier := s.f.admitted[m.cluster]; earlier.granted && earlier.isAbout(m.uid, s.of.target(m.cluster)) {
			if verdict := s.verdict(m.cluster); verdict.Held == "" {
				return planner.InFlight, earlier.since, time.Time{} // Its status does not show yet that it was admitted.
			}
		}
		return planner.Pending, time.Time{}, time.Time{}
	}
	// Where only configurations of its own spec differ, what counts is how it does with those of the rollout.
	noted := target.Gives(m.noted)
	state, since = m.reached(s.soak, noted)
	if state == planner.Succeeded && before.failed && !since.IsZero() && !m.well(before.fell) {
		state = planner.Failed // It has what it failed with, and is not well.
	}
	if state == planner.InFlight && target.AwaitsOwn && len(target.Missing) > 0 && !before.failed {
		return planner.Pending, time.Time{}, time.Time{} // Its own spec holds it, and the rollout does not wait for that.
	}
	if noted {
		due = m.due(s.soak)
	}
	return state, since, due
}

// reached returns the state of an add-on with regard to the configurations that its status names, and since when. noted
// reports whether addon.spokelet.io/Soaked is about them.
func (m *member) reached(soak time.Duration, noted bool) (planner.State, time.Time) {
	if noted && m.soaked {
		return planner.Succeeded, time.Time{} // What it does since is no matter of the rollout.
	}
	if !m.applied() {
		if m.progress == addonv1beta1.ProgressingReasonFailed {
			return planner.Failed, m.progressSince
		}
		return planner.InFlight, m.progressSince
	}
	if m.progress != addonv1beta1.ProgressingReasonCompleted {
		return planner.Succeeded, time.Time{}
	}
	reached := m.progressSince
	end := reached.Add(max(soak, settled))
	if !m.unhealthySince.IsZero() && !m.unhealthySince.After(end) {
		// The agent was not well when it got this configuration, or before it had it for long enough. What happens later
		// is no matter of the rollout.
		return planner.Failed, reached
	}
	return planner.Succeeded, reached
}

// groupSize returns clustersPerDecisionGroup of a Placement, which may be nil.
func groupSize(placement *clusterv1beta1.Placement) intstr.IntOrString {
	if placement == nil {
		return intstr.IntOrString{}
	}
	return placement.Spec.DecisionStrategy.GroupStrategy.ClustersPerDecisionGroup
}

// owns reports whether the placement at index, which selects a cluster, is the last one that does, or did a moment ago.
func (f facts) owns(index int, cluster string) bool {
	for _, later := range f.placements[index+1:] {
		if _, leaves := later.Leaves(cluster, f.now); leaves != nil || later.Selects(cluster) {
			return false
		}
	}
	return true
}
