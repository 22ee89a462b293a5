package placement_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	clusterv1beta2 "open-cluster-management.io/api/cluster/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/test/suite"
)

// reports waits until the condition of a set has a status, a reason and a message.
func (n *tenant) reports(set *clusterv1beta2.ManagedClusterSet, status metav1.ConditionStatus, reason, message string) {
	n.Helper()
	got := set.DeepCopy()
	n.awaits(got, &got.Status.Conditions, metav1.Condition{
		Type: clusterv1beta2.ManagedClusterSetConditionEmpty, Status: status, Reason: reason, Message: message,
	})
}

// bound waits until a binding reports whether its set is bound.
func (n *tenant) bound(
	binding *clusterv1beta2.ManagedClusterSetBinding, status metav1.ConditionStatus, reason, message string,
) {
	n.Helper()
	got := binding.DeepCopy()
	n.awaits(got, &got.Status.Conditions, metav1.Condition{
		Type: clusterv1beta2.ClusterSetBindingBoundType, Status: status, Reason: reason, Message: message,
	})
}

// awaits reads an object until its conditions have the wanted one.
func (n *tenant) awaits(object client.Object, conditions *[]metav1.Condition, want metav1.Condition) {
	n.Helper()
	suite.Eventually(n, func() error {
		if err := plane.Client.Get(n.Context(), client.ObjectKeyFromObject(object), object); err != nil {
			return err
		}
		c := meta.FindStatusCondition(*conditions, want.Type)
		if c == nil || c.Status != want.Status || c.Reason != want.Reason || c.Message != want.Message {
			return fmt.Errorf("the condition is %+v, not %+v", c, want)
		}
		return nil
	})
}

// Shows: hub/binding-status
func TestABindingReportsWhetherItsSetIsBound(t *testing.T) {
	n := newTenant(t)
	set := &clusterv1beta2.ManagedClusterSet{ObjectMeta: metav1.ObjectMeta{Name: n.full("late")}}
	early := n.bind(set.Name)
	missing := "ManagedClusterSet " + set.Name + " does not exist: create it, or delete this binding"
	n.bound(early, metav1.ConditionFalse, "ClusterSetNotFound", missing)
	n.bound(n.bind("global"), metav1.ConditionTrue, "ClusterSetBound",
		"ManagedClusterSet global is bound to namespace "+n.namespace)
	require.NoError(t, plane.Client.Create(t.Context(), set))
	n.bound(early, metav1.ConditionTrue, "ClusterSetBound",
		"ManagedClusterSet "+set.Name+" is bound to namespace "+n.namespace)
	require.NoError(t, plane.Client.Delete(t.Context(), set))
	n.bound(early, metav1.ConditionFalse, "ClusterSetNotFound", missing)
}

// It stays what it is from the first moment, no matter who writes it how: a set that would select nothing for a second
// would uninstall what was placed with it.
//
// Shows: hub/builtin-sets
func TestTheSetsOfEveryHubExistAndSelectWhatTheyShould(t *testing.T) {
	n := newTenant(t, "global")
	n.cluster("a")
	n.placement("all")
	n.expect("all", "[a]")
	first, err := n.slices(t.Context(), "all")
	require.NoError(t, err)
	history, err := plane.Client.Watch(t.Context(), &clusterv1beta1.PlacementDecisionList{},
		client.InNamespace(n.namespace), &client.ListOptions{
			Raw: &metav1.ListOptions{ResourceVersion: first[0].ResourceVersion},
		})
	require.NoError(t, err)
	defer history.Stop()

	byDefault := &clusterv1beta2.ManagedClusterSet{ObjectMeta: metav1.ObjectMeta{Name: "default"}}
	global := &clusterv1beta2.ManagedClusterSet{ObjectMeta: metav1.ObjectMeta{Name: "global"}}
	selects := func(set *clusterv1beta2.ManagedClusterSet, how clusterv1beta2.SelectorType, by *metav1.LabelSelector) {
		t.Helper()
		suite.Eventually(t, func() error {
			got := set.DeepCopy()
			err := plane.Client.Get(t.Context(), client.ObjectKeyFromObject(set), got)
			selector := got.Spec.ClusterSelector
			if err == nil && (selector.SelectorType != how || !equality.Semantic.DeepEqual(selector.LabelSelector, by)) {
				err = fmt.Errorf("the selector is %+v", selector)
			}
			return err
		})
	}
	selects(byDefault, clusterv1beta2.ExclusiveClusterSetLabel, nil)
	selects(global, clusterv1beta2.LabelSelector, &metav1.LabelSelector{})
	edit(n, global, func(s *clusterv1beta2.ManagedClusterSet) {
		s.Spec.ClusterSelector = clusterv1beta2.ManagedClusterSelector{SelectorType: clusterv1beta2.ExclusiveClusterSetLabel}
	})
	selects(global, clusterv1beta2.LabelSelector, &metav1.LabelSelector{})
	require.NoError(t, plane.Client.Delete(t.Context(), global))
	selects(global, clusterv1beta2.LabelSelector, &metav1.LabelSelector{})

	n.cluster("b")
	n.expect("all", "[a b]")
	for e := range history.ResultChan() {
		decision, ok := e.Object.(*clusterv1beta1.PlacementDecision)
		require.True(t, ok, "%+v", e.Object)
		decided := decision.Status.Decisions
		require.True(t, slices.ContainsFunc(decided, func(d clusterv1beta1.ClusterDecision) bool {
			return d.ClusterName == n.full("a")
		}), "the cluster was not selected any more: %+v", decided)
		if len(decided) > 1 {
			break
		}
	}
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

// An administrator takes a cluster out of the set of a namespace. A user who may write Placements there does not keep
// it.
//
// Shows: hub/narrowed
func TestAPlacementThatIsNotDecidedKeepsNoClusterThatLeavesItsSets(t *testing.T) {
	n := newTenant(t)
	require.NoError(t, plane.Client.Create(t.Context(), &clusterv1beta2.ManagedClusterSet{
		ObjectMeta: metav1.ObjectMeta{Name: n.namespace},
	}))
	n.bind(n.namespace)
	a := n.cluster("a", clusterv1beta2.ClusterSetLabel+"="+n.namespace)
	n.cluster("b", clusterv1beta2.ClusterSetLabel+"="+n.namespace)
	object := func(name string) *clusterv1beta1.Placement {
		return &clusterv1beta1.Placement{ObjectMeta: metav1.ObjectMeta{Namespace: n.namespace, Name: name}}
	}
	for _, name := range []string{"wrong", "left", "going"} {
		n.placement(name)
		n.expect(name, "[a b]")
	}
	n.editSpec("wrong", func(s *clusterv1beta1.PlacementSpec) {
		s.Predicates[0].RequiredClusterSelector.CelSelector.CelExpressions = []string{"managedCluster."}
	})
	n.says("wrong", misconfigured, "Misconfigured", "does not compile")
	edit(n, object("left"), func(p *clusterv1beta1.Placement) {
		p.Annotations = map[string]string{clusterv1beta1.PlacementDisableAnnotation: "true"}
	})
	edit(n, object("going"), func(p *clusterv1beta1.Placement) { p.Finalizers = []string{"example.com/mine"} })
	t.Cleanup(func() {
		patch := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))
		require.NoError(t, plane.Client.Patch(context.Background(), object("going"), patch))
	})
	require.NoError(t, plane.Client.Delete(t.Context(), object("going")))

	edit(n, a, func(c *clusterv1.ManagedCluster) { c.Labels[clusterv1beta2.ClusterSetLabel] = "another" })
	for _, name := range []string{"wrong", "left", "going"} {
		n.expect(name, "[b]")
	}
}
