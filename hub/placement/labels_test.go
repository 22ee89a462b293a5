package placement

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/cel-go/cel"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
)

// TestTheSelectorsOfAPlacementAreBounded: each label and value is compared with each cluster, and a Placement has room
// for hundreds of thousands. What a cache keeps of one that has too many is still too much.
//
// Shows: hub/selectors-bounded
func TestTheSelectorsOfAPlacementAreBounded(t *testing.T) {
	values := func(n int) metav1.LabelSelector {
		return metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{
			Key: "a", Operator: metav1.LabelSelectorOpNotIn, Values: slices.Repeat([]string{"b"}, n),
		}}}
	}
	labels := func(n int) metav1.LabelSelector {
		s := metav1.LabelSelector{MatchLabels: map[string]string{}}
		for i := range n {
			s.MatchLabels[fmt.Sprint("a", i)] = "b"
		}
		return s
	}
	without := metav1.LabelSelector{MatchExpressions: slices.Repeat([]metav1.LabelSelectorRequirement{
		{Key: "a", Operator: metav1.LabelSelectorOpExists},
	}, maxLabels+1)}
	for sentence, c := range map[string]struct {
		predicate, claims, group metav1.LabelSelector
		wrong                    bool
	}{
		"as many values as there may be": {predicate: values(maxLabels)},
		"one more":                       {predicate: values(maxLabels + 1), wrong: true},
		"labels of a predicate":          {predicate: labels(maxLabels + 1), wrong: true},
		"values of claims":               {claims: values(maxLabels + 1), wrong: true},
		"labels of a group":              {group: labels(100 * maxLabels), wrong: true},
		"all together":                   {predicate: labels(maxLabels / 2), group: values(maxLabels/2 + 1), wrong: true},
		"expressions without values":     {predicate: without, wrong: true},
	} {
		t.Run(sentence, func(t *testing.T) {
			p := &clusterv1beta1.Placement{}
			p.Spec.Predicates = []clusterv1beta1.ClusterPredicate{{RequiredClusterSelector: clusterv1beta1.ClusterSelector{
				LabelSelector: c.predicate,
				ClaimSelector: clusterv1beta1.ClusterClaimSelector{MatchExpressions: c.claims.MatchExpressions},
			}}}
			p.Spec.DecisionStrategy.GroupStrategy.DecisionGroups = []clusterv1beta1.DecisionGroup{{
				GroupName: "g", ClusterSelector: clusterv1beta1.GroupClusterSelector{LabelSelector: c.group},
			}}
			whole := p.DeepCopy()
			_, err := Bound(func(in any) (any, error) { return in, nil })(p)
			require.NoError(t, err)
			for _, spec := range []clusterv1beta1.PlacementSpec{whole.Spec, p.Spec} {
				misconfigured := parse(spec, nil).misconfigured
				if c.wrong {
					require.ErrorContains(t, misconfigured, "more than 4096 labels and values")
				} else {
					require.NoError(t, misconfigured)
				}
			}
			if !c.wrong {
				assert.Equal(t, whole, p)
			}
			kept := 0
			eachSelector(&p.Spec, func(s *metav1.LabelSelector) {
				kept += len(s.MatchLabels)
				for _, e := range s.MatchExpressions {
					kept += max(1, len(e.Values))
				}
			})
			assert.LessOrEqual(t, kept, maxLabels+1)
		})
	}
}

// TestAFewHundredWrongValuesAreSaid: the text about all of them was longer than a condition may be, so that the author
// was told nothing.
func TestAFewHundredWrongValuesAreSaid(t *testing.T) {
	var p clusterv1beta1.ClusterPredicate
	p.RequiredClusterSelector.LabelSelector.MatchExpressions = []metav1.LabelSelectorRequirement{{
		Key: "a", Operator: metav1.LabelSelectorOpIn, Values: slices.Repeat([]string{"!"}, 400),
	}}
	f := celFacts(p)
	misconfigured := parse(f.placement.Spec, nil).misconfigured
	require.ErrorContains(t, misconfigured, "spec.predicates[0].requiredClusterSelector.labelSelector: ")
	assert.Less(t, len(misconfigured.Error()), 1000)
}

// TestAPassCompilesAnExpressionOnce: the programs of all Placements together may be more than are kept, and then each
// cluster displaced those that the next one needed.
func TestAPassCompilesAnExpressionOnce(t *testing.T) {
	m := &memory{}
	f := celFacts(byCEL("managedCluster.metadata.name != '" + strings.Repeat("x", 100) + "'"))
	r := parse(f.placement.Spec, m.compile)
	require.NoError(t, r.misconfigured)
	asked := 0
	compile := r.predicates[0].expressions[0].program
	r.predicates[0].expressions[0].program = func() (cel.Program, error) { asked++; return compile() }
	held := r.held()
	for range 3 {
		_, err := held.predicates[0].expressions[0].program()
		require.NoError(t, err)
	}
	assert.Equal(t, 1, asked)
	_, err := r.held().predicates[0].expressions[0].program()
	require.NoError(t, err)
	assert.Equal(t, 2, asked, "the next pass asks again: what is kept is bounded")
}
