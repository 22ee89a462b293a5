package gate

import (
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"

	"github.com/spokelet/spokelet/internal/causes"
	"github.com/spokelet/spokelet/internal/message"
	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/internal/policies"
)

const (
	// ReasonDependency is the reason of condition Degraded of an add-on with an optional dependency that is not satisfied,
	// as in OCM's enhancement proposal 156.
	ReasonDependency = "DependencyNotSatisfied"
	// ReasonRequiredDependency is that of one with a required dependency that is not satisfied.
	ReasonRequiredDependency = "RequiredDependencyNotSatisfied"
	// maxSaid is how many bytes of a message of a dependency are told.
	maxSaid = 200
	// unsaidPeriod is how often it is looked whether a dependency says that it has what it is to have. It does so in a
	// moment, but not if that is taken back meanwhile.
	unsaidPeriod = 10 * time.Second
)

// dependencies are what comes before one add-on.
type dependencies struct {
	all []policies.Dependency
	// cycle is one that the add-on is in, and unknown are the names without a ClusterManagementAddOn.
	cycle   string
	unknown map[string]bool
}

// State is what is known of a dependency on a cluster.
type State struct {
	// Absent reports whether the cluster does not have it.
	Absent bool
	// Lacks is what is missing, as the end of a sentence; empty for nothing.
	Lacks string
	// Changes is why it is between two contents, likewise; empty where it is not.
	Changes string
	// Stuck reports that nobody knows for how long that will be.
	Stuck bool
	// Unsaid reports that only the hub manager knows what it changes to.
	Unsaid bool
}

// After returns the gate with the dependencies of the add-on. exists reports whether there is a ClusterManagementAddOn
// of a name.
func (g Gate) After(addOn string, o Order, exists func(string) bool) Gate {
	g.before = dependencies{all: o.of[addOn], cycle: o.Cycle(addOn), unknown: map[string]bool{}}
	for _, d := range g.before.all {
		g.before.unknown[d.Name] = !exists(d.Name)
	}
	g.problem = o.Problem(addOn, exists)
	return g
}

// Depends reports whether other add-ons come before this one.
func (g Gate) Depends() bool { return len(g.before.all) > 0 }

// Problem returns why the policy of the add-on cannot be followed; empty where it can.
func (g Gate) Problem() string { return g.problem }

// StateOf returns what is known of a dependency that is there; condition is the one that has to be True. has reports
// whether it has the content that it is to have, or that is not known.
func StateOf(addOn *addonv1beta1.ManagedClusterAddOn, condition string, has bool) State {
	conditions := addOn.Status.Conditions
	c := meta.FindStatusCondition(conditions, condition)
	switch {
	case !addOn.DeletionTimestamp.IsZero():
		return State{Lacks: "which is being deleted", Stuck: true}
	case c == nil:
		return State{Lacks: "which does not have condition " + condition}
	case c.Status != metav1.ConditionTrue:
		said := message.OneLine(message.Cut(strings.TrimSuffix(c.Message, "."), maxSaid))
		return State{Lacks: strings.TrimSuffix(fmt.Sprintf("whose condition %s is %s: %s", condition, c.Status, said), ": ")}
	}
	if waits := causes.Waits(conditions); waits != nil {
		said := strings.TrimPrefix(waits.Message, causes.NotConfigured+": ")
		return State{Changes: "which " + message.OneLine(message.Cut(said, maxSaid))}
	}
	s := State{Stuck: meta.IsStatusConditionTrue(conditions, names.ConditionRolloutFailed)}
	switch progress := meta.FindStatusCondition(conditions, addonv1beta1.ManagedClusterAddOnConditionProgressing); {
	case progress != nil && progress.Reason == addonv1beta1.ProgressingReasonFailed:
		s.Changes, s.Stuck = "which failed to get its configuration", true
	case progress != nil && progress.Reason == addonv1beta1.ProgressingReasonProgressing, !applied(addOn):
		s.Changes = "which does not have its configuration yet"
	case !has && s.Stuck: // It returned to what it had.
		s.Changes = "which its rollout counts as failed"
	case !has:
		s.Changes, s.Unsaid = "which is to have another configuration first", true
	default:
		return State{}
	}
	return s
}

// applied reports whether an add-on has what its status names.
func applied(addOn *addonv1beta1.ManagedClusterAddOn) bool {
	for _, r := range addOn.Status.ConfigReferences {
		if r.DesiredConfig != nil && (r.LastAppliedConfig == nil || *r.LastAppliedConfig != *r.DesiredConfig) {
			return false
		}
	}
	return true
}

// judgeDependencies decides by what comes before the add-on on a cluster.
func (g Gate) judgeDependencies(c Cluster, now time.Time) Verdict {
	if g.before.cycle != "" {
		return held(fmt.Sprintf("AddOnPolicy %s: %s", g.policy.Name, inCycle(g.before.cycle)))
	}
	for _, d := range g.before.all {
		state, why := g.stateOf(d, c)
		if why == "" {
			why = state.Changes
		}
		if why == "" {
			continue
		}
		verdict := held(fmt.Sprintf("it depends on add-on %s, %s", d.Name, why))
		verdict.Depends, verdict.Unusable = true, state.Changes == "" || state.Stuck
		if state.Unsaid {
			verdict.Wake = now.Add(unsaidPeriod)
		}
		return verdict
	}
	return Verdict{}
}

// stateOf returns the state of a dependency on a cluster, and what it lacks; empty where it is satisfied.
func (g Gate) stateOf(d policies.Dependency, c Cluster) (s State, lacks string) {
	s = c.Before[d.Name]
	optional := d.Type == policies.DependencyOptional
	switch {
	case s.Absent && optional:
		return s, ""
	case g.before.unknown[d.Name] && !optional:
		return State{}, "of which there is no ClusterManagementAddOn"
	case s.Absent:
		return s, "which is not on this cluster"
	}
	return s, s.Lacks
}

// Degraded returns the reason and the message of condition Degraded of the add-on on a cluster; empty where its
// dependencies are satisfied. One that gets another content is.
func (g Gate) Degraded(c Cluster) (reason, text string) {
	if g.before.cycle != "" {
		return "", "" // Each would follow from the others, and they may never come to rest.
	}
	var said []string
	for _, d := range g.before.all {
		_, lacks := g.stateOf(d, c)
		if lacks == "" {
			continue
		}
		said = append(said, fmt.Sprintf("the add-on depends on add-on %s, %s", d.Name, lacks))
		switch {
		case d.Type != policies.DependencyOptional:
			reason = ReasonRequiredDependency
		case reason == "":
			reason = ReasonDependency
		}
	}
	return reason, message.List(said, maxNames, "; ")
}
