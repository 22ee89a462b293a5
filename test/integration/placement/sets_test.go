package placement_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1beta2 "open-cluster-management.io/api/cluster/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/test/suite"
)

// reports waits until the condition of a set has a status, a reason and a message.
func (n *tenant) reports(set *clusterv1beta2.ManagedClusterSet, status metav1.ConditionStatus, reason, message string) {
	n.Helper()
	suite.Eventually(n, func() error {
		var got clusterv1beta2.ManagedClusterSet
		if err := plane.Client.Get(n.Context(), client.ObjectKeyFromObject(set), &got); err != nil {
			return err
		}
		c := meta.FindStatusCondition(got.Status.Conditions, clusterv1beta2.ManagedClusterSetConditionEmpty)
		if c == nil || c.Status != status || c.Reason != reason || c.Message != message {
			return fmt.Errorf("the condition is %+v, not %s %s: %s", c, status, reason, message)
		}
		return nil
	})
}

// bound waits until a binding reports whether its set is bound.
func (n *tenant) bound(binding *clusterv1beta2.ManagedClusterSetBinding, status metav1.ConditionStatus, reason string) {
	n.Helper()
	suite.Eventually(n, func() error {
		var got clusterv1beta2.ManagedClusterSetBinding
		if err := plane.Client.Get(n.Context(), client.ObjectKeyFromObject(binding), &got); err != nil {
			return err
		}
		c := meta.FindStatusCondition(got.Status.Conditions, clusterv1beta2.ClusterSetBindingBoundType)
		if c == nil || c.Status != status || c.Reason != reason {
			return fmt.Errorf("the condition is %+v, not %s %s", c, status, reason)
		}
		return nil
	})
}

// Shows: hub/binding-status
func TestABindingReportsWhetherItsSetIsBound(t *testing.T) {
	n := newTenant(t)
	set := &clusterv1beta2.ManagedClusterSet{ObjectMeta: metav1.ObjectMeta{Name: n.full("late")}}
	early, global := n.bind(set.Name), n.bind("global")
	n.bound(early, metav1.ConditionFalse, "ClusterSetNotFound")
	n.bound(global, metav1.ConditionTrue, "ClusterSetBound")
	require.NoError(t, plane.Client.Create(t.Context(), set))
	n.bound(early, metav1.ConditionTrue, "ClusterSetBound")
	require.NoError(t, plane.Client.Delete(t.Context(), set))
	n.bound(early, metav1.ConditionFalse, "ClusterSetNotFound")
}

// Shows: hub/set-status
func TestASetReportsItsClusters(t *testing.T) {
	n := newTenant(t)
	const none, some = "NoClusterMatched", "ClustersSelected"
	exclusive := &clusterv1beta2.ManagedClusterSet{ObjectMeta: metav1.ObjectMeta{Name: n.full("exclusive")}}
	byLabel := &clusterv1beta2.ManagedClusterSet{ObjectMeta: metav1.ObjectMeta{Name: n.full("labels")}}
	byLabel.Spec.ClusterSelector = clusterv1beta2.ManagedClusterSelector{
		SelectorType:  clusterv1beta2.LabelSelector,
		LabelSelector: &metav1.LabelSelector{MatchLabels: pairs("tenant=" + n.namespace)},
	}
	require.NoError(t, plane.Client.Create(t.Context(), exclusive))
	require.NoError(t, plane.Client.Create(t.Context(), byLabel))
	n.reports(exclusive, metav1.ConditionTrue, none, "No ManagedCluster selected")
	n.reports(byLabel, metav1.ConditionTrue, none, "No ManagedCluster selected")

	a := n.cluster("a", clusterv1beta2.ClusterSetLabel+"="+exclusive.Name)
	b := n.cluster("b")
	n.reports(exclusive, metav1.ConditionFalse, some, "1 ManagedClusters selected")
	n.reports(byLabel, metav1.ConditionFalse, some, "2 ManagedClusters selected")
	edit(n, b, func(c *clusterv1.ManagedCluster) { c.Labels[clusterv1beta2.ClusterSetLabel] = exclusive.Name })
	n.reports(exclusive, metav1.ConditionFalse, some, "2 ManagedClusters selected")
	edit(n, byLabel, func(s *clusterv1beta2.ManagedClusterSet) {
		s.Spec.ClusterSelector.LabelSelector = &metav1.LabelSelector{
			MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "tenant", Operator: "Near"}},
		}
	})
	n.reports(byLabel, metav1.ConditionUnknown, "ClusterSelectorInvalid", "ManagedClusterSet "+byLabel.Name+
		`: spec.clusterSelector.labelSelector: "Near" is not a valid label selector operator. Correct it; `+
		"until then placements that use the set keep their decisions")

	for _, cluster := range []*clusterv1.ManagedCluster{a, b} {
		require.NoError(t, plane.Client.Delete(t.Context(), cluster))
	}
	n.reports(exclusive, metav1.ConditionTrue, none, "No ManagedCluster selected")
}
