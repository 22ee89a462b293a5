package rollout

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"

	"github.com/spokelet/spokelet/csr"
	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/internal/reconcile"
	"github.com/spokelet/spokelet/internal/token"
)

const (
	// stuckAfter is how long a condition says no before the cluster counts as stuck: most add-ons start with one.
	stuckAfter = 5 * time.Second
	// maxCause is how many characters of the first cause are told.
	maxCause = 400

	// reasonClusterSilent is the reason of an add-on whose cluster the hub has lost.
	reasonClusterSilent = "ManagedClusterLeaseUpdateStopped"

	// Reasons of a placement controller, of ours or of OCM.
	reasonNoSetBindings  = "NoManagedClusterSetBindings"
	reasonNoIntersection = "NoIntersection"
	reasonEmptySets      = "AllManagedClusterSetsEmpty"
)

// stoppers are the conditions of an add-on that say with False why it does not work, the one that explains most first.
func stoppers() []string {
	return []string{
		addonv1beta1.ManagedClusterAddOnConditionConfigured,
		addonv1beta1.ManagedClusterAddOnHostingClusterValidity,
		addonv1beta1.ManagedClusterAddOnRegistrationApplied,
		token.ConditionInfrastructure, csr.ConditionRotated, token.ConditionRefreshed,
		addonv1beta1.ManagedClusterAddOnManifestApplied,
		addonv1beta1.ManagedClusterAddOnHostingManifestApplied,
		names.ConditionWorkloadsReady,
		addonv1beta1.ManagedClusterAddOnConditionAvailable,
	}
}

// trouble is what keeps the add-ons of a placement from working.
type trouble struct {
	// stuck is how many clusters have trouble, cluster the first of them by name, and cause what it says.
	stuck   int
	cluster string
	cause   *metav1.Condition
	// recheck is the next instant at which a condition has said no for too long; zero when there is none.
	recheck time.Time
}

// add counts an add-on.
func (t *trouble) add(addon *addonv1beta1.ManagedClusterAddOn, now time.Time) {
	cause, since := stuckCause(addon)
	if cause == nil {
		return
	}
	if at := since.Add(stuckAfter); now.Before(at) {
		t.recheck = reconcile.Earliest(t.recheck, at)
		return
	}
	if t.stuck++; t.cluster == "" || addon.Namespace < t.cluster {
		t.cluster, t.cause = addon.Namespace, cause
	}
}

// stuckCause returns the condition that says best why an add-on does not work, and since when one does; nil when none
// does, or the add-on is on its way out.
func stuckCause(addon *addonv1beta1.ManagedClusterAddOn) (*metav1.Condition, time.Time) {
	if !addon.DeletionTimestamp.IsZero() {
		return nil, time.Time{}
	}
	var best *metav1.Condition
	var since time.Time
	for _, kind := range stoppers() {
		c := meta.FindStatusCondition(addon.Status.Conditions, kind)
		if c == nil || c.Status != metav1.ConditionFalse {
			continue
		}
		if best == nil {
			best = c
		}
		since = reconcile.Earliest(since, c.LastTransitionTime.Time)
	}
	if best == nil {
		return silentCause(addon)
	}
	return best, since
}

// silentCause is the condition of an add-on that does not get further because the hub has lost its cluster; nil where
// that is not so.
func silentCause(addon *addonv1beta1.ManagedClusterAddOn) (*metav1.Condition, time.Time) {
	c := meta.FindStatusCondition(addon.Status.Conditions, addonv1beta1.ManagedClusterAddOnConditionAvailable)
	on := progressing(addon)
	if c == nil || c.Reason != reasonClusterSilent || (on != nil && completed(*on)) {
		return nil, time.Time{}
	}
	return c, c.LastTransitionTime.Time
}

// remark says how many clusters are stuck and why the first is; empty when none is.
func (t *trouble) remark() string {
	if t.stuck == 0 {
		return ""
	}
	are := "clusters are"
	if t.stuck == 1 {
		are = "cluster is"
	}
	cause := []rune(strings.TrimRight(strings.Join(strings.Fields(t.cause.Message), " "), "."))
	if len(cause) > maxCause {
		cause = append(cause[:maxCause], []rune("...")...)
	}
	return fmt.Sprintf("%d %s stuck, the first is %s: %s is %s (%s): %s", t.stuck, are, t.cluster, t.cause.Type,
		t.cause.Status, t.cause.Reason, string(cause))
}

// selectionRemark says why a placement selects no cluster and what to do; empty when it does, or may not have been
// looked at yet.
func (p placementFacts) selectionRemark(ref addonv1beta1.PlacementRef) string {
	name := fmt.Sprintf("placement %s/%s", ref.Namespace, ref.Name)
	if !p.exists {
		return name + " does not exist: create it, or correct spec.installStrategy.placements"
	}
	if len(p.clusters) > 0 {
		return ""
	}
	name += " selects no cluster: "
	if c := meta.FindStatusCondition(p.conditions, clusterv1beta1.PlacementConditionMisconfigured); c != nil &&
		c.Status == metav1.ConditionTrue {
		return name + said(c)
	}
	c := meta.FindStatusCondition(p.conditions, clusterv1beta1.PlacementConditionSatisfied)
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
	return name + said(c) + "; " + remedy
}

// said is the message of a condition without its full stop, or its reason.
func said(c *metav1.Condition) string { return strings.TrimRight(cmp.Or(c.Message, c.Reason), ".") }

// placementSaid reports whether two versions of a Placement say different things about what they select.
func placementSaid(was, is *clusterv1beta1.Placement) bool {
	return slices.ContainsFunc(
		[]string{clusterv1beta1.PlacementConditionMisconfigured, clusterv1beta1.PlacementConditionSatisfied},
		func(kind string) bool {
			a, b := meta.FindStatusCondition(was.Status.Conditions, kind), meta.FindStatusCondition(is.Status.Conditions, kind)
			if a == nil || b == nil {
				return a != b
			}
			return a.Status != b.Status || a.Reason != b.Reason || a.Message != b.Message
		})
}
