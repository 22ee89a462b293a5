package placement_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	clusterv1beta2 "open-cluster-management.io/api/cluster/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/test/suite"
)

// report writes the status of a cluster as its agent does.
func report(n *tenant, cluster *clusterv1.ManagedCluster, version string, claims ...string) {
	n.Helper()
	suite.Eventually(n, func() error {
		if err := plane.Client.Get(n.Context(), client.ObjectKeyFromObject(cluster), cluster); err != nil {
			return err
		}
		cluster.Status.Version.Kubernetes = version
		cluster.Status.ClusterClaims = nil
		for name, value := range pairs(claims...) {
			cluster.Status.ClusterClaims = append(cluster.Status.ClusterClaims,
				clusterv1.ManagedClusterClaim{Name: name, Value: value})
		}
		return plane.Client.Status().Update(n.Context(), cluster)
	})
}

// Shows: hub/selectors
func TestAPlacementFollowsLabelsClaimsAndExpressions(t *testing.T) {
	n := newTenant(t, "global")
	a, b := n.cluster("a", "env=prod"), n.cluster("b", "env=dev")
	with := func(change func(*clusterv1beta1.ClusterSelector)) func(*clusterv1beta1.PlacementSpec) {
		return func(s *clusterv1beta1.PlacementSpec) { change(&s.Predicates[0].RequiredClusterSelector) }
	}
	n.placement("labels", with(func(s *clusterv1beta1.ClusterSelector) { s.LabelSelector.MatchLabels["env"] = "prod" }))
	n.placement("claims", with(func(s *clusterv1beta1.ClusterSelector) {
		s.ClaimSelector.MatchExpressions = []metav1.LabelSelectorRequirement{{
			Key: "region", Operator: "In", Values: []string{"eu"},
		}}
	}))
	n.placement("cel", with(func(s *clusterv1beta1.ClusterSelector) {
		s.CelSelector.CelExpressions = []string{
			`semver(managedCluster.status.version.kubernetes, true).isGreaterThan(semver("1.30.0"))`,
			`managedCluster.status.clusterClaims.exists(c, c.name == "region")`,
		}
	}))
	n.placement("any", func(s *clusterv1beta1.PlacementSpec) {
		second := *s.Predicates[0].DeepCopy()
		s.Predicates[0].RequiredClusterSelector.LabelSelector.MatchLabels["env"] = "prod"
		second.RequiredClusterSelector.LabelSelector.MatchLabels["env"] = "dev"
		s.Predicates = append(s.Predicates, second)
	})
	n.expect("labels", "[a]")
	n.expect("claims", "[]")
	n.expect("any", "[a b]")
	n.says("cel", satisfied, "NoManagedClusterMatched", "2 clusters do not match because an expression fails for them",
		"celExpressions[0]: no such key: kubernetes")

	report(n, a, "v1.31.4", "region=eu")
	n.expect("claims", "[a]")
	n.expect("cel", "[a]")
	n.says("cel", satisfied, "AllDecisionsScheduled",
		"1 clusters do not match because an expression fails for them ("+n.full("b")+")")
	report(n, b, "v1.29.0", "region=us")
	n.says("cel", satisfied, "AllDecisionsScheduled")
	n.expect("cel", "[a]")
	report(n, b, "v1.32.0", "region=eu")
	n.expect("claims", "[a b]")
	n.expect("cel", "[a b]")
	report(n, a, "v1.31.4")
	n.expect("claims", "[b]")
	n.expect("cel", "[b]")
	edit(n, b, func(c *clusterv1.ManagedCluster) { c.Labels["env"] = "prod" })
	n.expect("labels", "[a b]")
	edit(n, a, func(c *clusterv1.ManagedCluster) { delete(c.Labels, "env") })
	n.expect("labels", "[b]")
	n.expect("any", "[b]")
}

// Shows: hub/set-types
func TestAPlacementFollowsSetsOfBothTypesAndTheirBindings(t *testing.T) {
	n := newTenant(t)
	exclusive, byLabel := n.full("exclusive"), n.full("labels")
	n.cluster("a", clusterv1beta2.ClusterSetLabel+"="+exclusive)
	b := n.cluster("b", "zone=1")
	n.placement("p")
	n.says("p", satisfied, "NoManagedClusterSetBindings")
	n.expect("p", "[]")

	// The binding of a set comes before the set.
	first, second := n.bind(exclusive), n.bind(byLabel)
	n.says("p", satisfied, "NoManagedClusterSetBindings", "ManagedClusterSet "+exclusive+" does not exist")
	set := &clusterv1beta2.ManagedClusterSet{ObjectMeta: metav1.ObjectMeta{Name: exclusive}}
	require.NoError(t, plane.Client.Create(t.Context(), set))
	n.expect("p", "[a]")
	labelled := &clusterv1beta2.ManagedClusterSet{ObjectMeta: metav1.ObjectMeta{Name: byLabel}}
	labelled.Spec.ClusterSelector = clusterv1beta2.ManagedClusterSelector{
		SelectorType:  clusterv1beta2.LabelSelector,
		LabelSelector: &metav1.LabelSelector{MatchLabels: pairs("tenant="+n.namespace, "zone=2")},
	}
	require.NoError(t, plane.Client.Create(t.Context(), labelled))
	edit(n, b, func(c *clusterv1.ManagedCluster) { c.Labels["zone"] = "2" })
	n.expect("p", "[a b]")
	edit(n, labelled, func(s *clusterv1beta2.ManagedClusterSet) {
		s.Spec.ClusterSelector.LabelSelector.MatchLabels["zone"] = "3"
	})
	n.expect("p", "[a]")
	edit(n, b, func(c *clusterv1.ManagedCluster) { c.Labels[clusterv1beta2.ClusterSetLabel] = exclusive })
	n.expect("p", "[a b]")
	n.editSpec("p", func(s *clusterv1beta1.PlacementSpec) { s.ClusterSets = []string{byLabel} })
	n.says("p", satisfied, "AllManagedClusterSetsEmpty")
	n.editSpec("p", func(s *clusterv1beta1.PlacementSpec) { s.ClusterSets = []string{"nobody"} })
	n.says("p", satisfied, "NoIntersection")
	n.editSpec("p", func(s *clusterv1beta1.PlacementSpec) { s.ClusterSets = nil })
	n.expect("p", "[a b]")

	require.NoError(t, plane.Client.Delete(t.Context(), first))
	n.expect("p", "[]")
	require.NoError(t, plane.Client.Delete(t.Context(), second))
	n.says("p", satisfied, "NoManagedClusterSetBindings")
	n.bind("default")
	n.cluster("c", clusterv1beta2.ClusterSetLabel+"=default")
	n.expect("p", "[c]")
	n.bind("global")
	n.expect("p", "[a b c]")
}

// Shows: hub/taints
func TestTaintsAndTolerationsDecideWhoIsSelected(t *testing.T) {
	n := newTenant(t, "global")
	taint := func(c *clusterv1.ManagedCluster, effect clusterv1.TaintEffect) {
		edit(n, c, func(c *clusterv1.ManagedCluster) {
			c.Spec.Taints = append(c.Spec.Taints, clusterv1.Taint{Key: "example.com/gpu", Value: "yes", Effect: effect})
		})
	}
	a, b, c := n.cluster("a"), n.cluster("b"), n.cluster("c")
	taint(b, clusterv1.TaintEffectNoSelectIfNew)
	taint(c, clusterv1.TaintEffectPreferNoSelect)
	n.placement("p")
	n.placement("tolerant", func(s *clusterv1beta1.PlacementSpec) {
		s.Tolerations = append(s.Tolerations, clusterv1beta1.Toleration{
			Key: "example.com/gpu", Operator: "Equal", Value: "yes",
		})
	})
	n.expect("p", "[a c]")
	n.says("p", satisfied, "AllDecisionsScheduled", "1 of the 3 clusters that match are kept out by taints")
	n.expect("tolerant", "[a b c]")
	taint(a, clusterv1.TaintEffectNoSelectIfNew)
	taint(c, clusterv1.TaintEffectNoSelect)
	n.expect("p", "[a]")
	n.expect("tolerant", "[a b c]")
	edit(n, b, func(c *clusterv1.ManagedCluster) { c.Spec.Taints = nil })
	n.expect("p", "[a b]")
	n.editSpec("tolerant", func(s *clusterv1beta1.PlacementSpec) { s.Tolerations[1].Value = "no" })
	n.expect("tolerant", "[a b]")
}
