package placement

import (
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
)

// byCEL is a predicate with expressions.
func byCEL(texts ...string) clusterv1beta1.ClusterPredicate {
	return clusterv1beta1.ClusterPredicate{RequiredClusterSelector: clusterv1beta1.ClusterSelector{
		CelSelector: clusterv1beta1.ClusterCelSelector{CelExpressions: texts},
	}}
}

// celFacts are a Placement with predicates over a fleet of which each cluster has a version.
func celFacts(predicates ...clusterv1beta1.ClusterPredicate) facts {
	f := facts{now: noon(), placement: placement(), clusters: everyCluster(), bindings: bound(setGlobal)}
	for _, cluster := range f.clusters {
		cluster.Status.Version.Kubernetes = map[string]string{"a": "v1.31.2", "b": "v1.30.0"}[cluster.Name]
		cluster.Status.Allocatable = clusterv1.ResourceList{}
	}
	f.placement.Spec.Predicates = predicates
	return f
}

// deep is an expression whose cost grows tenfold with each level.
func deep(levels int) string {
	digits := "[0,1,2,3,4,5,6,7,8,9]"
	text := "true"
	for i := range levels {
		text = digits + ".all(x" + strings.Repeat("x", i) + ", " + text + ")"
	}
	return text
}

func TestWhichClustersAnExpressionSelects(t *testing.T) {
	const platform = `managedCluster.status.clusterClaims.exists(c, c.name == "platform.open-cluster-management.io" && c.value == "AWS")`
	aws := byCEL(platform)
	aws.RequiredClusterSelector.LabelSelector.MatchLabels = map[string]string{"env": "dev"}
	tests := map[string]struct {
		predicates []clusterv1beta1.ClusterPredicate
		want       []string
		says       string
	}{
		"by a label":                {[]clusterv1beta1.ClusterPredicate{byCEL(`managedCluster.metadata.labels["env"].matches("^(prod|dev)$")`)}, []string{"a", "b"}, ""},
		"by a claim":                {[]clusterv1beta1.ClusterPredicate{byCEL(platform)}, []string{"a", "b"}, ""},
		"by a version":              {[]clusterv1beta1.ClusterPredicate{byCEL(`semver(managedCluster.?status.version.kubernetes.orValue("0.0.0"), true).isGreaterThan(semver("1.30.5"))`)}, []string{"a"}, ""},
		"all must be true":          {[]clusterv1beta1.ClusterPredicate{byCEL(platform, `managedCluster.metadata.name == "b"`)}, []string{"b"}, ""},
		"beside the label selector": {[]clusterv1beta1.ClusterPredicate{aws}, []string{"b"}, ""},
		"of several predicates one": {[]clusterv1beta1.ClusterPredicate{byCEL(`managedCluster.metadata.name == "c"`), byCEL(`managedCluster.metadata.name == "a"`)}, []string{"a", "c"}, ""},
		"functions for strings":     {[]clusterv1beta1.ClusterPredicate{byCEL(`managedCluster.metadata.name.upperAscii() in ["A", "C"]`)}, []string{"a", "c"}, ""},
		"where it fails, a cluster does not match": {
			[]clusterv1beta1.ClusterPredicate{byCEL(`managedCluster.status.version.kubernetes.startsWith("v1")`)}, []string{"a", "b"},
			"All cluster decisions scheduled; 1 clusters do not match because an expression fails for them (c), the first by " +
				"spec.predicates[0].requiredClusterSelector.celSelector.celExpressions[0]: no such key: kubernetes",
		},
		"unless another predicate matches": {
			[]clusterv1beta1.ClusterPredicate{byCEL(`managedCluster.status.version.kubernetes.startsWith("v1")`), {}}, []string{"a", "b", "c"},
			"All cluster decisions scheduled",
		},
		"a value of another type is a failure": {
			[]clusterv1beta1.ClusterPredicate{byCEL(`managedCluster.metadata.name`)}, nil,
			"No ManagedCluster matches the placement; 3 clusters do not match because an expression fails for them (a, b, c), the " +
				"first by spec.predicates[0].requiredClusterSelector.celSelector.celExpressions[0]: it gives a value of type string, not bool",
		},
	}
	for sentence, tc := range tests {
		t.Run(sentence, func(t *testing.T) {
			f := celFacts(tc.predicates...)
			p := decided(f)
			require.NoError(t, p.misconfigured)
			assert.ElementsMatch(t, tc.want, p.selection.names)
			if tc.says != "" {
				status := conclude(f, p, true, nil)
				c := meta.FindStatusCondition(status.Conditions, clusterv1beta1.PlacementConditionSatisfied)
				assert.Equal(t, tc.says, c.Message)
			}
		})
	}
}

func TestAnExpressionThatIsWrongLeavesTheDecisions(t *testing.T) {
	const path = "spec.predicates[1].requiredClusterSelector.celSelector.celExpressions[1]: the expression "
	tests := map[string]struct{ text, want string }{
		"it does not compile":                 {"managedCluster.metadata.name ==", path + `"managedCluster.metadata.name ==" does not compile: line 1, column 32: Syntax error`},
		"on its second line":                  {"true &&\n  nobody", path + `"true &&\n  nobody" does not compile: line 2, column 3: undeclared reference to 'nobody'`},
		"it names a function that is unknown": {`managedCluster.scores("x").size() > 0`, "does not compile: line 1, column 22: undeclared reference to 'scores'"},
		"it is no predicate":                  {"'yes'", `"'yes'" gives a value of type string, not bool`},
		"it has a constant that is wrong":     {"managedCluster.metadata.name.matches('(')", "cannot be prepared"},
		"it costs too much for a cluster":     {deep(6), "the expressions cost more than 20000 units of CEL for one cluster; simplify them, or select by labels and claims first; that is so for every ManagedCluster"},
	}
	for sentence, tc := range tests {
		t.Run(sentence, func(t *testing.T) {
			f := celFacts(byCEL("false"), byCEL("true", tc.text))
			f.decisionSlices = []*clusterv1beta1.PlacementDecision{earlierPage("c")}
			p := decided(f)
			require.ErrorContains(t, p.misconfigured, tc.want)
			assert.Empty(t, p.layout.Slices)
			f.placement.Status.NumberOfSelectedClusters = 42
			status := conclude(f, p, true, nil)
			c := meta.FindStatusCondition(status.Conditions, clusterv1beta1.PlacementConditionMisconfigured)
			assert.Equal(t, metav1.ConditionTrue, c.Status)
			assert.Equal(t, int32(42), status.NumberOfSelectedClusters)
		})
	}
}

// Shows: hub/expensive-cluster
func TestAClusterForWhichAnExpressionCostsTooMuchHoldsUpNoOther(t *testing.T) {
	for sentence, selected := range map[string]bool{"it keeps what it has": true, "it is not selected anew": false} {
		t.Run(sentence, func(t *testing.T) {
			f := celFacts(byCEL(`managedCluster.status.clusterClaims.all(c, c.name != "x")`))
			at := slices.IndexFunc(f.clusters, func(c *clusterv1.ManagedCluster) bool { return c.Name == "b" })
			for n := range 5000 {
				f.clusters[at].Status.ClusterClaims = append(f.clusters[at].Status.ClusterClaims,
					clusterv1.ManagedClusterClaim{Name: strconv.Itoa(n), Value: "v"})
			}
			want := []string{"a", "c"}
			if selected {
				f.decisionSlices = []*clusterv1beta1.PlacementDecision{earlierPage("b")}
				want = []string{"a", "b", "c"}
			}
			p := decided(f)
			require.NoError(t, p.misconfigured)
			assert.Equal(t, want, p.selection.names)
			status := conclude(f, p, true, nil)
			c := meta.FindStatusCondition(status.Conditions, clusterv1beta1.PlacementConditionSatisfied)
			assert.Contains(t, c.Message, "an expression fails for them (b)")
			assert.Contains(t, c.Message, "cost more than 20000 units of CEL")
			f.clusters[at].Spec.Taints = []clusterv1.Taint{{Key: "k", Effect: clusterv1.TaintEffectNoSelect}}
			assert.Equal(t, []string{"a", "c"}, decided(f).selection.names, "its agent keeps no place that a taint takes away")
		})
	}
}

func TestExpressionsHaveOneBudgetForTheFleet(t *testing.T) {
	f := celFacts(byCEL(deep(3)))
	require.NoError(t, decided(f).misconfigured, "a few clusters")
	for len(f.clusters) < 3000 {
		f.clusters = append(f.clusters, f.clusters[0])
	}
	require.ErrorContains(t, decided(f).misconfigured, "cost more than 10000000 units of CEL for all clusters together")
}

func TestThereAreNotTooManyExpressions(t *testing.T) {
	var many []string
	for range maxExpressions {
		many = append(many, "true")
	}
	require.NoError(t, decided(celFacts(byCEL(many...))).misconfigured)
	require.ErrorContains(t, decided(celFacts(byCEL(many...), byCEL("true"))).misconfigured,
		"spec.predicates have 33 CEL expressions of 132 bytes; a Placement may have 32 of 16384 bytes")
	long := "true || '" + strings.Repeat("x", maxText) + "' == ''"
	require.ErrorContains(t, decided(celFacts(byCEL(long))).misconfigured, "spec.predicates have 1 CEL expressions")
}

func TestAnOrdinaryExpressionCostsLittle(t *testing.T) {
	c := largeFleet()[0]
	for len(c.Status.ClusterClaims) < 50 {
		c.Status.ClusterClaims = append(c.Status.ClusterClaims, c.Status.ClusterClaims[0])
	}
	f := celFacts(byCEL(`managedCluster.status.clusterClaims.exists(c, c.name == "x" && c.value == "y")`))
	f.rules = parse(f.placement.Spec, new(memory).compile)
	assert.Less(t, int(interestOf(f).judge(c).cost), maxClusterCost/20)
}
