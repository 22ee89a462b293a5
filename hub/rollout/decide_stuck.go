package rollout

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"

	"github.com/spokelet/spokelet/hub/fleet"
	"github.com/spokelet/spokelet/internal/causes"
	"github.com/spokelet/spokelet/internal/message"
	"github.com/spokelet/spokelet/internal/reconcile"
)

const (
	// stuckAfter is how long a condition must be False until its cluster counts as stuck: most add-ons start with one.
	stuckAfter = 5 * time.Second
	// maxCause is how many bytes a message quotes of a cause.
	maxCause = 400

	// Reasons of placement controllers, ours and OCM's.
	reasonNoSetBindings  = "NoManagedClusterSetBindings"
	reasonNoIntersection = "NoIntersection"
	reasonEmptySets      = "AllManagedClusterSetsEmpty"
)

// stuckAddOns counts the add-ons of a placement that do not work.
type stuckAddOns struct {
	// count is the number of stuck clusters; cluster is the first of them by name, and cause its condition.
	count   int
	cluster string
	cause   *metav1.Condition
	// recheck is the next instant at which a cluster may count as stuck; zero for none.
	recheck time.Time
}

// add takes an add-on into account. One that waits for its turn in the rollout is not stuck by that.
func (t *stuckAddOns) add(m *member, waits bool, now time.Time) {
	cause, since := m.cause, m.causeSince
	if waits && cause != nil && cause.Type == addonv1beta1.ManagedClusterAddOnConditionConfigured {
		cause, since = m.other, m.otherSince
	}
	if cause == nil {
		return
	}
	if at := since.Add(stuckAfter); now.Before(at) {
		t.recheck = reconcile.Earliest(t.recheck, at)
		return
	}
	if t.count++; t.cluster == "" || m.cluster < t.cluster {
		t.cluster, t.cause = m.cluster, cause
	}
}

// stuckCause returns the most informative condition of an add-on that does not work, of some kinds, and since when; nil
// when it works or is being deleted. One that makes no progress because the hub has lost its cluster does not work.
func stuckCause(addon *addonv1beta1.ManagedClusterAddOn, kinds []string) (*metav1.Condition, time.Time) {
	if !addon.DeletionTimestamp.IsZero() {
		return nil, time.Time{}
	}
	if found, since := causes.FirstFalse(addon.Status.Conditions, kinds); found != nil {
		return found, since
	}
	silent := causes.Silent(addon.Status.Conditions)
	if silent == nil || causes.Completed(addon.Status.Conditions) {
		return nil, time.Time{}
	}
	return silent, silent.LastTransitionTime.Time
}

// remark returns how many clusters are stuck, and the cause of the first; empty when none is.
func (t *stuckAddOns) remark() string {
	if t.count == 0 {
		return ""
	}
	are := "clusters are"
	if t.count == 1 {
		are = "cluster is"
	}
	return fmt.Sprintf("%d %s stuck, the first is %s: %s is %s (%s): %s", t.count, are, t.cluster, t.cause.Type,
		t.cause.Status, t.cause.Reason, message.Cut(message.OneLine(t.cause.Message), maxCause))
}

// selectionRemark returns why a placement selects no cluster, with a remedy, or why it is unknown which ones it
// selects; empty when it is known.
func selectionRemark(d *fleet.Decisions, ref addonv1beta1.PlacementRef) string {
	name := fmt.Sprintf("placement %s/%s", ref.Namespace, ref.Name)
	switch {
	case d.Placement == nil:
		return name + " does not exist: create it, or correct spec.installStrategy.placements"
	case len(d.Names) > 0 && d.Incomplete != nil:
		return d.Incomplete.Error()
	case len(d.Names) > 0:
		return ""
	}
	name += " selects no cluster: "
	conditions := d.Placement.Status.Conditions
	if c := meta.FindStatusCondition(conditions, clusterv1beta1.PlacementConditionMisconfigured); c != nil &&
		c.Status == metav1.ConditionTrue {
		return name + explanation(c)
	}
	c := meta.FindStatusCondition(conditions, clusterv1beta1.PlacementConditionSatisfied)
	switch {
	case c == nil:
		return name + "no placement controller has decided it; start the hub manager with --placement=true, or one of OCM"
	case c.Status == metav1.ConditionTrue:
		return ""
	}
	remedy := "compare spec.predicates and spec.tolerations with the labels and taints of the ManagedClusters"
	switch c.Reason {
	case reasonNoSetBindings:
		remedy = fmt.Sprintf("create a ManagedClusterSetBinding in namespace %s for a set that has clusters", ref.Namespace)
	case reasonNoIntersection:
		remedy = fmt.Sprintf("spec.clusterSets must name sets that a ManagedClusterSetBinding in namespace %s binds",
			ref.Namespace)
	case reasonEmptySets:
		remedy = "put ManagedClusters into the sets, by their label cluster.open-cluster-management.io/clusterset"
	}
	return name + explanation(c) + "; " + remedy
}

// explanation returns the message of a condition without its full stop, or its reason.
func explanation(c *metav1.Condition) string {
	return strings.TrimRight(cmp.Or(c.Message, c.Reason), ".")
}
