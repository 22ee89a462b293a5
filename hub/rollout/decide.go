package rollout

import (
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
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
	// clusters are the selected clusters with their decision groups.
	clusters map[string]group
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
	owners := f.owners()
	p := plan{admissions: make(map[string]admission, len(f.members))}
	fleet := planner.Fleet{Now: f.now}
	targets := map[string]string{}
	for index := range f.placements {
		placement, stuck := f.placement(index, owners, targets)
		fleet.Placements = append(fleet.Placements, placement)
		p.stuck = append(p.stuck, stuck)
		p.wake = reconcile.Earliest(p.wake, stuck.recheck)
	}
	made := planner.Make(fleet)
	p.placements, p.wake = made.Placements, reconcile.Earliest(p.wake, made.Wake)
	for _, result := range made.Placements {
		for _, cluster := range result.Admit {
			p.admissions[cluster] = f.granted(cluster, targets[cluster])
		}
		for _, wait := range result.Hold {
			p.admissions[wait.Name] = admission{target: targets[wait.Name], reason: wait.Why}
		}
	}
	return p
}

// granted returns the admission of a cluster; it begins when the target was first granted.
func (f facts) granted(cluster, target string) admission {
	if earlier, found := f.admitted[cluster]; found && earlier.granted && earlier.target == target {
		return earlier
	}
	return admission{target: target, granted: true, since: f.now}
}

// placement returns the placement at index with the clusters that it owns, and adds their targets.
func (f facts) placement(
	index int, owners map[string]int, targets map[string]string,
) (planner.Placement, stuckAddOns) {
	strategy := f.cma.Spec.InstallStrategy.Placements[index]
	p := planner.Placement{
		Strategy: strategy.RolloutStrategy, GroupSize: f.placements[index].groupSize,
		Selected: len(f.placements[index].clusters),
	}
	// Most add-ons have no configs of their own, so the target is computed once for them.
	common := f.target(&addonv1beta1.ManagedClusterAddOn{}, index)
	soak := addonconfig.MinSuccessTime(strategy.RolloutStrategy)
	var stuck stuckAddOns
	for cluster, group := range f.placements[index].clusters {
		if owners[cluster] != index {
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
		if len(m.addOn.Spec.Configs) > 0 || len(common.Waiting) > 0 {
			target = f.target(m.addOn, index)
		}
		targets[cluster] = Fingerprint(target.Rolled())
		state, since := f.state(m, target, targets[cluster], soak)
		held := heldBy(target)
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
	if !target.Reached(m.addOn) {
		earlier := f.admitted[m.addOn.Namespace]
		switch {
		case target.Admitted(m.addOn):
			return planner.InFlight, time.Time{}
		case earlier.granted && earlier.target == fingerprint:
			return planner.InFlight, earlier.since // Its status does not show yet that it was admitted.
		}
		return planner.Pending, time.Time{}
	}
	progress := meta.FindStatusCondition(m.conditions, addonv1beta1.ManagedClusterAddOnConditionProgressing)
	if !m.applied() {
		switch {
		case progress == nil:
			return planner.InFlight, time.Time{}
		case progress.Reason == addonv1beta1.ProgressingReasonFailed:
			return planner.Failed, progress.LastTransitionTime.Time
		}
		return planner.InFlight, progress.LastTransitionTime.Time
	}
	if progress == nil || progress.Reason != addonv1beta1.ProgressingReasonCompleted {
		return planner.Succeeded, time.Time{}
	}
	reached := progress.LastTransitionTime.Time
	end := reached.Add(max(soak, settled))
	if unhealthySince := m.unhealthySince(); !unhealthySince.IsZero() && !unhealthySince.After(end) {
		// The agent was not well when it got this configuration, or before it had it for long enough. What happens later
		// is no matter of the rollout.
		return planner.Failed, reached
	}
	return planner.Succeeded, reached
}

// owners maps every selected cluster to the last placement that selects it.
func (f facts) owners() map[string]int {
	owners := map[string]int{}
	for index, placement := range f.placements {
		for cluster := range placement.clusters {
			owners[cluster] = index
		}
	}
	return owners
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
