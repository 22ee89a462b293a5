package planner

import (
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1alpha1 "open-cluster-management.io/api/cluster/v1alpha1"

	"github.com/spokelet/spokelet/internal/reconcile"
)

// Fleet is one add-on on all clusters of its placements.
type Fleet struct {
	// Now is the instant of the decision.
	Now time.Time
	// Placements are those of the install strategy, in its order. Of several that select a cluster the last owns it.
	Placements []Placement
}

// Placement is a placement of the install strategy with the clusters that it owns.
type Placement struct {
	// Strategy is the rolloutStrategy; its zero value is All.
	Strategy clusterv1alpha1.RolloutStrategy
	// GroupSize is clustersPerDecisionGroup of the Placement, the default of maxConcurrency; zero for none.
	GroupSize intstr.IntOrString
	// Selected is the number of clusters that the placement selects, no matter who owns them.
	Selected int
	// Clusters are those that the placement owns and that have the add-on or will get it, in any order, each once.
	Clusters []Cluster
	// Held explains why no cluster may be admitted at all, such as a configuration that does not exist; empty when they
	// may.
	Held string
	// Completes is set where it counts whether the target completed, so that a Wake comes when time alone shows that.
	Completes bool
	// Undoes is set where the target is what the clusters had before: no failure stops the others from returning to it.
	Undoes bool
}

// Cluster is the add-on on one cluster.
type Cluster struct {
	// Name is the name of the cluster.
	Name string
	// Group is the index of its decision group in the placement that owns it, and GroupName the name of that group. A
	// negative index means that the decision has none.
	Group     int
	GroupName string
	// State is the state of the cluster with regard to the target.
	State State
	// Since is since when the cluster is on its way to the target (InFlight, Failed), since when it succeeded, or since
	// when its former add-on is being deleted (Awaited); zero when unknown: such a cluster never times out, and it soaked
	// long ago. It begins again with every target.
	Since time.Time
	// Due is when a cluster that has the target, and broke or was created again while it soaked, should have soaked at
	// first; zero for any other. The progressDeadline ends that long after it at the latest, however often the cluster is
	// well in between.
	Due time.Time
	// Fell is set for one that Failed because its agent is not available.
	Fell bool
	// Again is set for a cluster that is Awaited because its add-on was deleted on its way, which it is since Since.
	Again bool
	// HasFailed is set for a cluster that is Awaited or Pending, failed or timed out with what it had before, and has not
	// been well since. Where nothing holds it, it had the target, and is admitted to it again however many have failed.
	HasFailed bool
	// Broken reports whether an earlier target is not well there: it has not reached it, or does not work. It counts while
	// the cluster is Pending.
	Broken bool
	// Held explains why this cluster may not move, such as a configuration of its own that does not exist; empty when it
	// may. It counts while the cluster is Pending.
	Held string
	// Gated is set where Held is a policy or a window, which a person or the clock ends: the later waves wait for it.
	Gated bool
	// Depends is set where Held is an add-on on which this one depends. The later waves do not wait for that by itself,
	// but it counts against what its wave tolerates when they are to begin: their content is not proved there either.
	Depends bool
	// AwaitsOwn is since when a cluster that is InFlight awaits what its own spec names, which Held explains; zero for any
	// other. It keeps its slot until its deadline, or for a minute, and is not a failure then.
	AwaitsOwn time.Time
	// Own is set where the spec of the add-on itself names what is new in the target: the cluster does not show whether
	// that works, as long as there are others.
	Own bool
	// Leaving is set for a cluster that the placement does not select at the moment, and may select again soon. It keeps
	// its slot and its failure, and the status does not count it.
	Leaving bool
}

// State is the state of an add-on on a cluster with regard to the target of its rollout.
type State int

const (
	// Pending is a cluster whose configuration differs from the target, and that was not admitted to it.
	Pending State = iota
	// InFlight is a cluster that was admitted to the target and has neither reached it nor failed.
	InFlight
	// Failed is a cluster that has the target and reports that it does not work.
	Failed
	// Succeeded is a cluster that has reached the target.
	Succeeded
	// Awaited is a cluster that will get the add-on and has none yet, or not any more.
	Awaited
)

// Plan is the decision for a Fleet.
type Plan struct {
	// Placements are the decisions for the placements, in their order.
	Placements []Result
	// Wake is the next instant at which the decision changes by itself; zero for never.
	Wake time.Time
}

// Result is the decision for one placement. All names are sorted. Awaited clusters are in no list but TimedOut.
type Result struct {
	// Admit are the clusters that may have the target: those that have it, and New.
	Admit []string
	// New are the clusters that are admitted now.
	New []string
	// Hold are the clusters that keep what they have, each with the cause.
	Hold []Wait
	// TimedOut are the clusters that are on their way to the target for longer than the progressDeadline.
	TimedOut []string
	// Waves is how many waves there are, and Wave which one is the first that is not finished, from 1; zero when all are.
	Waves, Wave int
	// Turn identifies that wave; it says nothing when all are finished.
	Turn WaveID
	// Counts are the numbers that the status of the placement reports.
	Counts Counts
	// Problem explains which field of the strategy cannot be used, and what is allowed there; empty when all can. While
	// there is one, nothing is admitted.
	Problem string
	// Stopped explains which failures keep the waiting clusters from being admitted; empty when none do.
	Stopped string
	// Failing are the clusters of the first wave of which more failed or timed out than the Tolerated, also where no
	// cluster waits; FailingOf describes them. None where no wave has so many.
	Failing   []string
	Tolerated int
	FailingOf string
	// Exceeded reports whether so many failed, with strategy All more than half of the clusters. Settled reports whether
	// the target completed as far as it can: not so many failed, nothing moves or waits, and at least one cluster has it
	// and is well, and not fewer than those that something of their own or a dependency holds, or that have been on their
	// way for an hour without a deadline. Clusters that are Own count where there are no others, which Shown denies.
	Exceeded, Settled, Shown bool
	// Remarks are further sentences for the author of the strategy.
	Remarks []string
	// Wake is the next instant at which the result changes by itself: the end of a soak or a deadline; zero for never.
	Wake time.Time
}

// Wait is a cluster that keeps the configuration that it has.
type Wait struct {
	// Name is the name of the cluster.
	Name string
	// Why explains it for the condition of the add-on. It changes with the strategy and not with the progress of other
	// clusters, so that a fleet that waits is not written again and again.
	Why string
}

// Admits reports whether the named cluster may have the target.
func (r Result) Admits(name string) bool {
	_, found := slices.BinarySearch(r.Admit, name)
	return found
}

// Why returns what the named cluster waits for; empty when it does not wait.
func (r Result) Why(name string) string {
	byName := func(w Wait, name string) int { return strings.Compare(w.Name, name) }
	n, found := slices.BinarySearchFunc(r.Hold, name, byName)
	if !found {
		return ""
	}
	return r.Hold[n].Why
}

// Counts are the numbers of clusters that the status of a placement reports (docs/reference/hub.md, "Counts of a
// placement").
type Counts struct {
	// Total holds what the placement selects, Configured what it owns with an add-on or soon with one.
	Total, Configured int
	// Progressing are those admitted, in flight or soaking; Done those that succeeded and soaked.
	Progressing, Done int
	// Failed are those that report that they do not work, TimedOut those that took longer than the progressDeadline. A
	// cluster may be both.
	Failed, TimedOut int
	// unfinished are those that leave and have not reached the target, or have failed with it.
	unfinished int
}

// count counts the clusters of the placement.
func (r *Result) count(p Placement, members []member) {
	c := Counts{Total: p.Selected}
	for n := range members {
		m := &members[n]
		if m.Leaving {
			if m.phase != done {
				c.unfinished++
			}
			continue
		}
		c.Configured++
		if m.phase.late() {
			c.TimedOut++
		}
		switch {
		case m.State == Failed, m.HasFailed && !m.phase.late():
			c.Failed++
		case m.phase == done:
			c.Done++
		case m.phase.keepsSlot() || m.admitted:
			c.Progressing++
		}
	}
	r.Counts = c
}

// Lingering is how long a cluster without a deadline is on its way before the others show whether the target works.
const Lingering = time.Hour

// moves reports whether a cluster may show soon whether the target works there, and when it stops to by itself; zero
// for never.
func (m *member) moves(r rules, now time.Time) (is bool, until time.Time) {
	switch {
	case m.phase == waiting, m.phase.pends() && (m.Gated || m.admitted):
		return true, time.Time{}
	case m.phase == awaited && m.Since.IsZero(): // It may never be installed.
		return false, time.Time{}
	case m.phase == awaited, m.phase.keepsSlot():
		if r.expires || m.Since.IsZero() || m.phase == soaking {
			return true, time.Time{}
		}
		until = m.Since.Add(Lingering)
		return now.Before(until), until
	}
	return false, time.Time{}
}

// settle finds out whether the target completed as far as it can, or failed.
func (r *Result) settle(p Placement, rules rules, members []member, now time.Time) {
	held := r.Problem != "" || p.Held != ""
	var failures, well, kept int
	r.Shown = slices.ContainsFunc(members, func(m member) bool { return !m.Own })
	for n := range members {
		m := &members[n]
		moves, until := m.moves(rules, now)
		held = held || moves
		if moves && p.Completes {
			r.Wake = reconcile.Earliest(r.Wake, until)
		}
		switch {
		case m.phase.failure():
			failures++
		case r.Shown && m.Own:
		case m.phase == done && !m.Leaving:
			well++
		case m.phase != done:
			kept++
		}
	}
	r.Exceeded = len(r.Failing) > 0 || rules.kind == clusterv1alpha1.All && 2*failures > len(members)
	r.Settled = well > 0 && (r.Counts.Complete() || !held && !r.Exceeded && well >= kept)
}

// Complete reports whether all clusters of the placement have the target, those that leave and may come back at once as
// well. A placement without clusters is not complete.
func (c Counts) Complete() bool { return c.Done == c.Configured && c.Done > 0 && c.unfinished == 0 }

// String returns the counts in the form that scripts of OCM parse.
func (c Counts) String() string {
	if c.Complete() {
		return fmt.Sprintf("selected clusters %d. configured addons %d/%d completed with no errors, %d failed %d timeout.",
			c.Total, c.Done, c.Configured, c.Failed, c.TimedOut)
	}
	return fmt.Sprintf("selected clusters %d. configured addons %d/%d progressing..., %d failed %d timeout.",
		c.Total, c.Progressing+c.Done, c.Configured, c.Failed, c.TimedOut)
}

// Condition returns the condition Progressing of the placement: the counts, and after them what the planner and the
// caller remark.
func (r Result) Condition(more ...string) metav1.Condition {
	condition := metav1.Condition{
		Type:    addonv1beta1.ManagedClusterAddOnConditionProgressing,
		Status:  metav1.ConditionTrue,
		Reason:  addonv1beta1.ProgressingReasonProgressing,
		Message: r.Counts.String(),
	}
	if r.Counts.Complete() {
		condition.Status, condition.Reason = metav1.ConditionFalse, addonv1beta1.ProgressingReasonCompleted
	}
	remarks := slices.DeleteFunc(slices.Concat([]string{r.Problem, r.Stopped}, r.Remarks, more),
		func(remark string) bool { return remark == "" })
	if len(remarks) > 0 {
		condition.Message += " " + strings.Join(remarks, "; ") + "."
	}
	return condition
}
