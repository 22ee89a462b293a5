package clusterset

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	clusterv1beta2 "open-cluster-management.io/api/cluster/v1beta2"
)

func TestASetReportsItsClusters(t *testing.T) {
	now := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		f    facts
		want metav1.Condition
	}{
		"a set without a cluster is empty": {
			facts{}, metav1.Condition{Status: "True", Reason: "NoClusterMatched", Message: "No ManagedCluster selected"},
		},
		"a set with clusters is not": {
			facts{clusters: 3},
			metav1.Condition{Status: "False", Reason: "ClustersSelected", Message: "3 ManagedClusters selected"},
		},
		"of a set that cannot be understood nothing is known": {
			facts{invalid: errors.New("wrong operator")},
			metav1.Condition{
				Status: "Unknown", Reason: "ClusterSelectorInvalid",
				Message: "wrong operator. Correct it; until then placements that use the set keep their decisions",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			c.f.now = now
			c.want.Type, c.want.LastTransitionTime = "ClusterSetEmpty", metav1.NewTime(now)
			others := metav1.Condition{Type: "Other", Status: "True"}
			status := clusterv1beta2.ManagedClusterSetStatus{Conditions: []metav1.Condition{others}}
			conclude(c.f, &status)
			require.Equal(t, []metav1.Condition{others, c.want}, status.Conditions)
		})
	}
}

func TestAClusterConcernsTheSetsThatItJoinsOrLeaves(t *testing.T) {
	named := func(name string, selector *clusterv1beta2.ManagedClusterSelector) *clusterv1beta2.ManagedClusterSet {
		set := &clusterv1beta2.ManagedClusterSet{ObjectMeta: metav1.ObjectMeta{Name: name}}
		if selector != nil {
			set.Spec.ClusterSelector = *selector
		}
		return set
	}
	by := func(selector *metav1.LabelSelector) *clusterv1beta2.ManagedClusterSelector {
		return &clusterv1beta2.ManagedClusterSelector{
			SelectorType: clusterv1beta2.LabelSelector, LabelSelector: selector,
		}
	}
	sets := []*clusterv1beta2.ManagedClusterSet{
		named("global", by(&metav1.LabelSelector{})), named("blue", nil),
		named("prod", by(&metav1.LabelSelector{MatchLabels: map[string]string{"env": "prod"}})),
		named("wrong", by(&metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Operator: "?"}}})),
	}
	blue, prod := labels.Set{clusterv1beta2.ClusterSetLabel: "blue"}, labels.Set{"env": "prod"}
	for name, c := range map[string]struct {
		older, newer labels.Set
		want         []string
	}{
		"a new cluster joins each set that selects it": {nil, blue, []string{"global", "blue"}},
		"one that goes leaves them":                    {prod, nil, []string{"global", "prod"}},
		"other labels move it":                         {blue, prod, []string{"blue", "prod"}},
		"a label that no set looks at moves nothing":   {prod, labels.Set{"env": "prod", "x": "y"}, nil},
		"a cluster without labels is in the global set": {
			nil, labels.Set{}, []string{"global"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, c.want, joinedOrLeft(sets, c.older, c.newer))
		})
	}
}

func TestTheSetsOfEveryHubAreKept(t *testing.T) {
	everything := clusterv1beta2.ManagedClusterSelector{
		SelectorType: clusterv1beta2.LabelSelector, LabelSelector: &metav1.LabelSelector{},
	}
	exclusive := clusterv1beta2.ManagedClusterSelector{SelectorType: clusterv1beta2.ExclusiveClusterSetLabel}
	object := func(name string, selector clusterv1beta2.ManagedClusterSelector) *clusterv1beta2.ManagedClusterSet {
		return &clusterv1beta2.ManagedClusterSet{
			ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: clusterv1beta2.ManagedClusterSetSpec{ClusterSelector: selector},
		}
	}
	left, deleted := object("global", exclusive), object("global", exclusive)
	left.Annotations = map[string]string{"cluster.open-cluster-management.io/autoupdate": "false"}
	deleted.DeletionTimestamp = &metav1.Time{}
	*deleted.DeletionTimestamp = metav1.Now()
	for name, c := range map[string]struct {
		name string
		set  *clusterv1beta2.ManagedClusterSet
		want *clusterv1beta2.ManagedClusterSelector
	}{
		"the set of all clusters is created":          {"global", nil, &everything},
		"the set of the others is created":            {"default", nil, &exclusive},
		"another selector is changed back":            {"global", object("global", exclusive), &everything},
		"an annotation leaves it to its users":        {"global", left, &exclusive},
		"one that is being deleted is left":           {"global", deleted, nil},
		"the sets of users keep their selectors":      {"blue", object("blue", everything), &everything},
		"a set of users that went is not made again":  {"blue", nil, nil},
		"the set of the others has no other selector": {"default", object("default", everything), &exclusive},
	} {
		t.Run(name, func(t *testing.T) {
			got := decide(facts{name: c.name, set: c.set})
			if c.want == nil {
				require.Nil(t, got)
				return
			}
			require.Equal(t, *c.want, got.Spec.ClusterSelector)
			require.Equal(t, c.name, got.Name)
		})
	}
}
