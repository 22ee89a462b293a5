package placement_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/util/retry"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/test/suite"
)

const (
	satisfied     = clusterv1beta1.PlacementConditionSatisfied
	misconfigured = clusterv1beta1.PlacementConditionMisconfigured
)

// Shows: hub/decisions-restored
func TestDecisionsThatSomebodyDeletesOrChangesAreRestored(t *testing.T) {
	n := newTenant(t, "global")
	n.cluster("other", "tenant=none") // without one, and before another test has made one, the set is empty
	n.placement("p")
	n.expect("p", "[]")
	n.says("p", satisfied, "NoManagedClusterMatched")
	n.cluster("a")
	n.cluster("b")
	n.expect("p", "[a b]")
	decision := func() *clusterv1beta1.PlacementDecision {
		return &clusterv1beta1.PlacementDecision{ObjectMeta: metav1.ObjectMeta{Namespace: n.namespace, Name: "p-decision-1"}}
	}
	require.NoError(t, plane.Client.Delete(t.Context(), decision()))
	suite.Eventually(t, func() error {
		return plane.Client.Get(t.Context(), client.ObjectKeyFromObject(decision()), decision())
	})
	n.expect("p", "[a b]")

	changed := decision()
	edit(n, changed, func(o *clusterv1beta1.PlacementDecision) { o.Labels = nil })
	n.expect("p", "[a b]")
	edit(n, changed, func(o *clusterv1beta1.PlacementDecision) { o.Labels[names.LabelDecisionGroupIndex] = "x" })
	n.expect("p", "[a b]")
	suite.Eventually(t, func() error { // the hub manager may be restoring the label
		if err := plane.Client.Get(t.Context(), client.ObjectKeyFromObject(changed), changed); err != nil {
			return err
		}
		changed.Status.Decisions = []clusterv1beta1.ClusterDecision{}
		return plane.Client.Status().Update(t.Context(), changed)
	})
	n.expect("p", "[a b]")
}

// Shows: hub/placement-status-restored
func TestAStatusOfAPlacementThatSomebodyChangesIsRestored(t *testing.T) {
	n := newTenant(t, "global")
	n.placement("p")
	n.cluster("a")
	placement := &clusterv1beta1.Placement{ObjectMeta: metav1.ObjectMeta{Namespace: n.namespace, Name: "p"}}
	var was clusterv1beta1.PlacementStatus
	read := func() error {
		err := plane.Client.Get(t.Context(), client.ObjectKeyFromObject(placement), placement)
		if err == nil && placement.Status.NumberOfSelectedClusters != 1 {
			return fmt.Errorf("the status is %+v", placement.Status)
		}
		return err
	}
	for sentence, change := range map[string]func(*clusterv1beta1.PlacementStatus){
		"the number": func(s *clusterv1beta1.PlacementStatus) { s.NumberOfSelectedClusters = 7 },
		"the mark": func(s *clusterv1beta1.PlacementStatus) {
			meta.RemoveStatusCondition(&s.Conditions, names.ConditionDecided)
		},
		"all of it": func(s *clusterv1beta1.PlacementStatus) { *s = clusterv1beta1.PlacementStatus{} },
	} {
		suite.Eventually(t, read)
		was = *placement.Status.DeepCopy()
		require.NoError(t, retry.RetryOnConflict(retry.DefaultBackoff, func() error {
			require.NoError(t, plane.Client.Get(t.Context(), client.ObjectKeyFromObject(placement), placement))
			change(&placement.Status)
			return plane.Client.Status().Update(t.Context(), placement)
		}))
		suite.Eventually(t, func() error {
			if err := read(); err != nil {
				return err
			}
			if is := meta.FindStatusCondition(placement.Status.Conditions, names.ConditionDecided); is == nil ||
				is.Message != meta.FindStatusCondition(was.Conditions, names.ConditionDecided).Message {
				return fmt.Errorf("%s: the mark is %v", sentence, is)
			}
			return nil
		})
	}
}

// Shows: hub/newcomer
func TestANewcomerDisplacesNobody(t *testing.T) {
	n := newTenant(t, "global")
	for _, name := range []string{"c", "d", "e"} {
		n.cluster(name)
	}
	n.placement("p", func(s *clusterv1beta1.PlacementSpec) { s.NumberOfClusters = new(int32(2)) })
	n.expect("p", "[c d]")
	n.says("p", satisfied, "AllDecisionsScheduled")
	n.cluster("a")
	n.placement("all")
	n.expect("all", "[a c d e]")
	n.expect("p", "[c d]")
	n.editSpec("p", func(s *clusterv1beta1.PlacementSpec) { s.NumberOfClusters = new(int32(3)) })
	n.expect("p", "[a c d]")
	n.editSpec("p", func(s *clusterv1beta1.PlacementSpec) { s.NumberOfClusters = new(int32(5)) })
	n.expect("p", "[a c d e]")
	n.says("p", satisfied, "NotAllDecisionsScheduled", "4 of 5 clusters")
	n.editSpec("p", func(s *clusterv1beta1.PlacementSpec) { s.NumberOfClusters = new(int32(1)) })
	n.expect("p", "[a]")
	n.says("p", satisfied, "AllDecisionsScheduled")
}

// Shows: hub/leaving-clusters
func TestAClusterThatIsDeletedLeavesAtOnce(t *testing.T) {
	n := newTenant(t, "global")
	going := n.cluster("going")
	n.cluster("stays")
	n.placement("p")
	n.expect("p", "[going stays]")
	edit(n, going, func(c *clusterv1.ManagedCluster) { c.Finalizers = append(c.Finalizers, "example.com/test") })
	require.NoError(t, plane.Client.Delete(t.Context(), going))
	n.expect("p", "[stays]")
	edit(n, going, func(c *clusterv1.ManagedCluster) { c.Finalizers = nil })
}

// Shows: hub/decision-groups
func TestClustersAreDividedIntoDecisionGroups(t *testing.T) {
	n := newTenant(t, "global")
	n.cluster("a", "ring=canary")
	for i := range 4 {
		n.cluster(fmt.Sprintf("b%d", i))
	}
	canary := clusterv1beta1.DecisionGroup{GroupName: "canary"}
	canary.ClusterSelector.LabelSelector.MatchLabels = pairs("ring=canary")
	n.placement("p", func(s *clusterv1beta1.PlacementSpec) {
		s.DecisionStrategy.GroupStrategy.DecisionGroups = []clusterv1beta1.DecisionGroup{canary}
		s.DecisionStrategy.GroupStrategy.ClustersPerDecisionGroup = intstr.FromInt32(3)
	})
	n.expect("p", "canary[a] [b0 b1 b2] [b3]")

	// A newcomer fills a group, a named group that needs a second index moves those behind it, and its cluster leaves the
	// rest.
	b2 := &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: n.full("b2")}}
	n.cluster("aa")
	n.expect("p", "canary[a] [b0 b1 b2] [aa b3]")
	edit(n, b2, func(c *clusterv1.ManagedCluster) { c.Labels["ring"] = "canary" })
	n.expect("p", "canary[a b2] [b0 b1] [aa b3]")
	for _, name := range []string{"x", "y"} {
		n.cluster(name, "ring=canary")
	}
	n.expect("p", "canary[a b2 x] canary[y] [b0 b1] [aa b3]")

	n.editSpec("p", func(s *clusterv1beta1.PlacementSpec) {
		s.DecisionStrategy.GroupStrategy.ClustersPerDecisionGroup = intstr.FromString("100%")
	})
	n.expect("p", "canary[a b2 x y] [aa b0 b1 b3]")
	n.editSpec("p", func(s *clusterv1beta1.PlacementSpec) {
		s.DecisionStrategy.GroupStrategy = clusterv1beta1.GroupStrategy{ClustersPerDecisionGroup: intstr.FromString("25%")}
	})
	n.expect("p", "[b0 b1] [a b2] [aa b3] [x y]")
}

// Shows: hub/misconfigured-repaired
func TestAPlacementThatIsWrongKeepsItsDecisionsUntilItIsRepaired(t *testing.T) {
	n := newTenant(t, "global")
	n.cluster("a")
	n.placement("p")
	n.expect("p", "[a]")
	for text, change := range map[string]func(*clusterv1beta1.PlacementSpec){
		"spec.prioritizerPolicy.configurations": func(s *clusterv1beta1.PlacementSpec) {
			s.PrioritizerPolicy.Configurations = []clusterv1beta1.PrioritizerConfig{{
				ScoreCoordinate: &clusterv1beta1.ScoreCoordinate{Type: "BuiltIn", BuiltIn: "Balance"}, Weight: 2,
			}}
		},
		"spec.spreadPolicy.spreadConstraints": func(s *clusterv1beta1.PlacementSpec) {
			s.SpreadPolicy.SpreadConstraints = []clusterv1beta1.SpreadConstraintsTerm{{
				TopologyKey: "zone", TopologyKeyType: clusterv1beta1.TopologyKeyTypeLabel, MaxSkew: 1,
				WhenUnsatisfiable: clusterv1beta1.ScheduleAnyway,
			}}
		},
		"spec.predicates[0].requiredClusterSelector.celSelector.celExpressions[0]: the expression \"managedCluster.\" does " +
			"not compile: line 1, column 16": func(s *clusterv1beta1.PlacementSpec) {
			s.Predicates[0].RequiredClusterSelector.CelSelector.CelExpressions = []string{"managedCluster."}
		},
	} {
		n.editSpec("p", func(s *clusterv1beta1.PlacementSpec) {
			s.Predicates[0].RequiredClusterSelector.LabelSelector.MatchLabels["no"] = "cluster"
			change(s)
		})
		n.says("p", misconfigured, "Misconfigured", text)
		n.expect("p", "[a]")
		n.editSpec("p", func(s *clusterv1beta1.PlacementSpec) {
			s.PrioritizerPolicy.Configurations, s.SpreadPolicy.SpreadConstraints = nil, nil
			s.Predicates[0].RequiredClusterSelector = n.own()
		})
		n.says("p", misconfigured, "Succeedconfigured")
		n.expect("p", "[a]")
	}
}

// Shows: hub/one-look
func TestALabelThatAPlacementDoesNotLookAtCausesNoWrite(t *testing.T) {
	n := newTenant(t, "global")
	a := n.cluster("a")
	n.placement("p")
	n.expect("p", "[a]")
	versions := func() string {
		var p clusterv1beta1.Placement
		key := client.ObjectKey{Namespace: n.namespace, Name: "p"}
		list, err := n.slices(t.Context(), "p")
		require.NoError(t, errors.Join(err, plane.Client.Get(t.Context(), key, &p)))
		require.Len(t, list, 1)
		return p.ResourceVersion + " " + list[0].ResourceVersion
	}
	before := versions()
	for i := range 5 {
		edit(n, a, func(c *clusterv1.ManagedCluster) {
			c.Labels["feature.open-cluster-management.io/addon-x"] = fmt.Sprint(i)
		})
	}
	suite.Quiet(t, time.Second, versions)
	require.Equal(t, before, versions())
}
