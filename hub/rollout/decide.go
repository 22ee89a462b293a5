package rollout

import (
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"

	"github.com/spokelet/spokelet/hub/rollout/planner"
	"github.com/spokelet/spokelet/internal/addonconfig"
	"github.com/spokelet/spokelet/internal/confighash"
	"github.com/spokelet/spokelet/internal/message"
	"github.com/spokelet/spokelet/internal/reconcile"
)

// settled is how long an add-on that becomes unavailable after it was completed counts as failed at least: a cluster
// reports on its pods a moment after it has applied them.
const settled = 10 * time.Second

// facts are the inputs of the decision about an add-on on all its clusters.
type facts struct {
	now time.Time
	cma *addonv1beta1.ClusterManagementAddOn
	// placements are the facts about the placements of the install strategy, in its order.
	placements []placementFacts
	// members are the add-ons by cluster; none for an add-on that people install.
	members map[string]*member
	states  addonconfig.States
	// served are those of the selected clusters without an add-on that will get it: they exist, are accepted and are not
	// being deleted.
	served map[string]bool
	// admitted has, for each cluster that was admitted by an earlier plan, the target and when that was.
	admitted map[string]admission
}

// placementFacts are the facts about one placement.
type placementFacts struct {
	exists bool
	// conditions are those of the Placement.
	conditions []metav1.Condition
	// groupSize is clustersPerDecisionGroup of the Placement.
	groupSize intstr.IntOrString
	// selection are the selected clusters with their decision groups.
	selection
}

// group is a decision group; its index is negative when the decision has none.
type group struct {
	index int
	name  string
}

// admission is the decision about one cluster.
type admission struct {
	// target identifies the configuration that the decision is about.
	target string
	// granted reports whether the cluster may have it; reason is why not.
	granted bool
	reason  string
	// since is when it was first granted.
	since time.Time
}

// plan is the decision about an add-on on all its clusters.
type plan struct {
	placements []planner.Result
	// stuck are the stuck add-ons of each placement.
	stuck []stuckAddOns
	// admissions are the decisions by cluster.
	admissions map[string]admission
	// wake is when time alone may change the decision; zero for never.
	wake time.Time
}

// decide plans the rollout.
func decide(f facts) plan {
	p := plan{admissions: make(map[string]admission, len(f.members))}
	fleet := planner.Fleet{Now: f.now}
	all := make([]targets, len(f.placements))
	for index := range f.placements {
		placement, stuck := f.placement(index, &all[index])
		fleet.Placements = append(fleet.Placements, placement)
		p.stuck = append(p.stuck, stuck)
		p.wake = reconcile.Earliest(p.wake, stuck.recheck)
	}
	made := planner.Make(fleet)
	p.placements, p.wake = made.Placements, reconcile.Earliest(p.wake, made.Wake)
	for index, result := range made.Placements {
		for _, cluster := range result.Admit {
			p.admissions[cluster] = f.granted(cluster, all[index].target(cluster))
		}
		for _, wait := range result.Hold {
			p.admissions[wait.Name] = admission{target: all[index].target(wait.Name), reason: wait.Why}
		}
	}
	return p
}

// targets identify the targets of the add-ons of a placement: one for nearly all of them, and those of the others by
// cluster.
type targets struct {
	common string
	others map[string]string
}

func (t *targets) target(cluster string) string {
	if other, found := t.others[cluster]; found {
		return other
	}
	return t.common
}

func (t *targets) set(cluster, target string) {
	if target == t.common {
		return
	}
	if t.others == nil {
		t.others = map[string]string{}
	}
	t.others[cluster] = target
}

// granted returns the admission of a cluster; it begins when the target was first granted.
func (f facts) granted(cluster, target string) admission {
	if earlier, found := f.admitted[cluster]; found && earlier.granted && earlier.target == target {
		return earlier
	}
	return admission{target: target, granted: true, since: f.now}
}

// placement returns the placement at index with the clusters that it owns, and adds their targets.
func (f facts) placement(index int, of *targets) (planner.Placement, stuckAddOns) {
	strategy, selection := f.cma.Spec.InstallStrategy.Placements[index], f.placements[index].selection
	p := planner.Placement{
		Strategy: strategy.RolloutStrategy, GroupSize: f.placements[index].groupSize,
		Selected: len(selection.names), Clusters: make([]planner.Cluster, 0, len(selection.names)),
	}
	// Most add-ons have no configs of their own, so the target is computed once for them.
	common := f.target(&addonv1beta1.ManagedClusterAddOn{}, index)
	of.common = Fingerprint(common.Rolled())
	soak := addonconfig.MinSuccessTime(strategy.RolloutStrategy)
	var stuck stuckAddOns
	for _, cluster := range selection.names {
		if !f.owns(index, cluster) {
			continue
		}
		m, found := f.members[cluster]
		if !found || m.deleting {
			if f.served[cluster] {
				p.Awaited++ // It is installed soon, or again.
			}
			continue
		}
		target := common
		if len(m.configs) > 0 || len(common.Waiting) > 0 {
			target = f.target(m.addOn(), index)
			of.set(cluster, Fingerprint(target.Rolled()))
		}
		state, since := f.state(m, target, of.target(cluster), soak)
		held, group := heldBy(target), selection.groups[cluster]
		stuck.add(m, state == planner.Pending && held == "", f.now)
		p.Clusters = append(p.Clusters, planner.Cluster{
			Name: cluster, Group: group.index, GroupName: group.name, State: state, Since: since, Held: held,
		})
	}
	return p, stuck
}

func (f facts) target(addOn *addonv1beta1.ManagedClusterAddOn, index int) addonconfig.Target {
	return addonconfig.NewTarget(addonconfig.Inputs{AddOn: addOn, CMA: f.cma, Placement: index, States: f.states})
}

// heldBy returns why an add-on cannot be admitted to a target that is not complete; "" when it is.
func heldBy(target addonconfig.Target) string {
	const most = 5
	if len(target.Missing) > 0 {
		return message.List(target.Missing, most, "; ")
	}
	return message.List(target.Waiting, most, "; ")
}

// state returns the state of an add-on with regard to its target, and since when.
func (f facts) state(
	m *member, target addonconfig.Target, fingerprint string, soak time.Duration,
) (planner.State, time.Time) {
	if !addonconfig.SameDesired(m.references, target.References) {
		earlier := f.admitted[m.cluster]
		switch {
		case target.Admitted(m.addOn()):
			return planner.InFlight, time.Time{}
		case earlier.granted && earlier.target == fingerprint:
			return planner.InFlight, earlier.since // Its status does not show yet that it was admitted.
		}
		return planner.Pending, time.Time{}
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

// owns reports whether the placement at index, which selects a cluster, is the last one that does.
func (f facts) owns(index int, cluster string) bool {
	for _, later := range f.placements[index+1:] {
		if _, selects := later.groups[cluster]; selects {
			return false
		}
	}
	return true
}

// Fingerprint identifies the content of references, whatever their order.
func Fingerprint(references []addonv1beta1.ConfigReference) string {
	keys := make([]string, 0, len(references))
	for _, reference := range references {
		key := reference.Group + "/" + reference.Resource
		if desired := reference.DesiredConfig; desired != nil {
			key = confighash.Key(reference.ConfigGroupResource, desired.ConfigReferent) + "@" + desired.SpecHash
		}
		keys = append(keys, key)
	}
	return strings.Join(keys, ",")
}
