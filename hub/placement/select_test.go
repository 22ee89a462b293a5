package placement

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
)

func noon() time.Time { return time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC) }

// everyCluster has a cluster per environment; a and b run on one platform, c on another, d is leaving, and
// 0 is not accepted.
func everyCluster() []*clusterv1.ManagedCluster {
	cluster := func(name, env, platform string) *clusterv1.ManagedCluster {
		c := &clusterv1.ManagedCluster{
			ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"env": env}}, Spec: clusterv1.ManagedClusterSpec{HubAcceptsClient: true},
		}
		c.Status.ClusterClaims = []clusterv1.ManagedClusterClaim{{Name: "platform.open-cluster-management.io", Value: platform}}
		return c
	}
	going := cluster("d", "prod", "AWS")
	at := metav1.NewTime(noon())
	going.DeletionTimestamp = &at
	refused := cluster("0", "prod", "AWS")
	refused.Spec.HubAcceptsClient = false
	return []*clusterv1.ManagedCluster{
		cluster("c", "test", "GCP"), cluster("a", "prod", "AWS"), going, cluster("b", "dev", "AWS"), refused,
	}
}

// everywhere is the scope of all clusters.
func everywhere() scope {
	return scope{sets: []string{setGlobal}, members: []labels.Selector{labels.Everything()}}
}

// decided is the plan that follows from facts.
func decided(f facts) plan {
	f.rules = parse(f.placement.Spec, new(memory).compile)
	return decide(f, interestOf(f))
}

func by(key string, op metav1.LabelSelectorOperator, values ...string) []metav1.LabelSelectorRequirement {
	return []metav1.LabelSelectorRequirement{{Key: key, Operator: op, Values: values}}
}

func labelled(req []metav1.LabelSelectorRequirement) clusterv1beta1.ClusterSelector {
	return clusterv1beta1.ClusterSelector{LabelSelector: metav1.LabelSelector{MatchExpressions: req}}
}

func claimed(req []metav1.LabelSelectorRequirement) clusterv1beta1.ClusterSelector {
	return clusterv1beta1.ClusterSelector{ClaimSelector: clusterv1beta1.ClusterClaimSelector{MatchExpressions: req}}
}

func TestWhichClustersAPlacementSelects(t *testing.T) {
	const platform = "platform.open-cluster-management.io"
	both := labelled(by("env", "In", "prod", "dev"))
	both.ClaimSelector = claimed(by(platform, "In", "AWS")).ClaimSelector
	both.LabelSelector.MatchLabels = map[string]string{"env": "dev"}
	tests := map[string]struct {
		predicates []clusterv1beta1.ClusterSelector
		number     *int32
		current    []string
		want       []string
	}{
		"without predicates all that are not leaving": {want: []string{"a", "b", "c"}},
		"an empty predicate matches all":              {predicates: []clusterv1beta1.ClusterSelector{{}}, want: []string{"a", "b", "c"}},
		"In":                                          {predicates: []clusterv1beta1.ClusterSelector{labelled(by("env", "In", "prod", "test"))}, want: []string{"a", "c"}},
		"NotIn":                                       {predicates: []clusterv1beta1.ClusterSelector{labelled(by("env", "NotIn", "prod"))}, want: []string{"b", "c"}},
		"Exists":                                      {predicates: []clusterv1beta1.ClusterSelector{labelled(by("env", "Exists"))}, want: []string{"a", "b", "c"}},
		"DoesNotExist":                                {predicates: []clusterv1beta1.ClusterSelector{labelled(by("env", "DoesNotExist"))}, want: []string{}},
		"a claim":                                     {predicates: []clusterv1beta1.ClusterSelector{claimed(by(platform, "In", "GCP"))}, want: []string{"c"}},
		"a claim that must not be":                    {predicates: []clusterv1beta1.ClusterSelector{claimed(by("gpu", "DoesNotExist"))}, want: []string{"a", "b", "c"}},
		"inside a predicate all must match":           {predicates: []clusterv1beta1.ClusterSelector{both}, want: []string{"b"}},
		"of several predicates one must match": {
			predicates: []clusterv1beta1.ClusterSelector{labelled(by("env", "In", "prod")), claimed(by(platform, "In", "GCP"))},
			want:       []string{"a", "c"},
		},
		"the first by name when not all are wanted":  {number: new(int32(2)), want: []string{"a", "b"}},
		"those that are selected already come first": {number: new(int32(2)), current: []string{"c"}, want: []string{"a", "c"}},
		"more are wanted than there are":             {number: new(int32(9)), want: []string{"a", "b", "c"}},
		"none is wanted":                             {number: new(int32(0)), want: []string{}},
		"one that left the fleet is not kept":        {number: new(int32(1)), current: []string{"d"}, want: []string{"a"}},
	}
	for sentence, tc := range tests {
		t.Run(sentence, func(t *testing.T) {
			spec := clusterv1beta1.PlacementSpec{NumberOfClusters: tc.number}
			for _, selector := range tc.predicates {
				spec.Predicates = append(spec.Predicates, clusterv1beta1.ClusterPredicate{RequiredClusterSelector: selector})
			}
			in := interest{rules: parse(spec, new(memory).compile), scope: everywhere()}
			require.NoError(t, in.rules.misconfigured)
			f := facts{now: noon(), placement: &clusterv1beta1.Placement{Spec: spec}, clusters: everyCluster()}
			current := map[string]bool{}
			for _, name := range tc.current {
				current[name] = true
			}
			got, err := selectClusters(f, in, current)
			require.NoError(t, err)
			assert.ElementsMatch(t, tc.want, got.names)
		})
	}
}

func TestTaintsKeepClustersOut(t *testing.T) {
	taint := func(effect clusterv1.TaintEffect) []clusterv1.Taint {
		return []clusterv1.Taint{{Key: "gpu", Value: "yes", Effect: effect, TimeAdded: metav1.NewTime(noon())}}
	}
	tolerate := func(t clusterv1beta1.Toleration) []clusterv1beta1.Toleration { return []clusterv1beta1.Toleration{t} }
	tests := map[string]struct {
		taints      []clusterv1.Taint
		tolerations []clusterv1beta1.Toleration
		selected    bool
		at          time.Duration
		want        bool
		until       time.Time
	}{
		"no taint":                         {want: true},
		"NoSelect":                         {taints: taint("NoSelect")},
		"NoSelect, also when selected":     {taints: taint("NoSelect"), selected: true},
		"NoSelectIfNew":                    {taints: taint("NoSelectIfNew")},
		"not NoSelectIfNew when selected":  {taints: taint("NoSelectIfNew"), selected: true, want: true},
		"not PreferNoSelect":               {taints: taint("PreferNoSelect"), want: true},
		"not when key and value are equal": {taints: taint("NoSelect"), tolerations: tolerate(clusterv1beta1.Toleration{Key: "gpu", Value: "yes"}), want: true},
		"when the value differs":           {taints: taint("NoSelect"), tolerations: tolerate(clusterv1beta1.Toleration{Key: "gpu", Value: "no"})},
		"not when the key exists":          {taints: taint("NoSelect"), tolerations: tolerate(clusterv1beta1.Toleration{Key: "gpu", Operator: "Exists"}), want: true},
		"not when everything is tolerated": {taints: taint("NoSelect"), tolerations: tolerate(clusterv1beta1.Toleration{Operator: "Exists"}), want: true},
		"when another effect is tolerated": {taints: taint("NoSelect"), tolerations: tolerate(clusterv1beta1.Toleration{Operator: "Exists", Effect: "PreferNoSelect"})},
		"not while the toleration lasts":   {taints: taint("NoSelect"), tolerations: tolerate(clusterv1beta1.Toleration{Operator: "Exists", TolerationSeconds: new(int64(60))}), at: 59 * time.Second, want: true, until: noon().Add(time.Minute)},
		"at the instant at which it ends":  {taints: taint("NoSelect"), tolerations: tolerate(clusterv1beta1.Toleration{Operator: "Exists", TolerationSeconds: new(int64(60))}), at: time.Minute},
		"not while a second toleration lasts": {
			taints: taint("NoSelect"), at: 90 * time.Second, want: true, until: noon().Add(2 * time.Minute),
			tolerations: []clusterv1beta1.Toleration{
				{Operator: "Exists", TolerationSeconds: new(int64(60))}, {Key: "gpu", Operator: "Exists", TolerationSeconds: new(int64(120))},
			},
		},
	}
	for sentence, tc := range tests {
		t.Run(sentence, func(t *testing.T) {
			got, until := tolerates(tc.tolerations, tc.taints, tc.selected, noon().Add(tc.at))
			assert.Equal(t, tc.want, got)
			assert.Equal(t, tc.until, until)
		})
	}
}

func TestWhatIsNotSupportedIsNamed(t *testing.T) {
	tests := map[string]struct {
		spec clusterv1beta1.PlacementSpec
		want string
	}{
		"prioritizers": {clusterv1beta1.PlacementSpec{PrioritizerPolicy: clusterv1beta1.PrioritizerPolicy{
			Configurations: []clusterv1beta1.PrioritizerConfig{{}},
		}}, "spec.prioritizerPolicy.configurations"},
		"mode": {clusterv1beta1.PlacementSpec{PrioritizerPolicy: clusterv1beta1.PrioritizerPolicy{Mode: "Exact"}}, "spec.prioritizerPolicy.mode"},
		"spread": {clusterv1beta1.PlacementSpec{SpreadPolicy: clusterv1beta1.SpreadPolicy{
			SpreadConstraints: []clusterv1beta1.SpreadConstraintsTerm{{}},
		}}, "spec.spreadPolicy"},
		"sorting by score": {clusterv1beta1.PlacementSpec{SortBy: "Score"}, "spec.sortBy"},
		"what the API server fills in is no demand": {clusterv1beta1.PlacementSpec{
			SortBy: "ClusterName", ScoreRateLimit: "1m", PrioritizerPolicy: clusterv1beta1.PrioritizerPolicy{Mode: "Additive"},
			DecisionStrategy: clusterv1beta1.DecisionStrategy{
				GroupStrategy: clusterv1beta1.GroupStrategy{ClustersPerDecisionGroup: intstr.FromString("100%")},
			},
		}, ""},
	}
	for sentence, tc := range tests {
		t.Run(sentence, func(t *testing.T) {
			p := decided(facts{now: noon(), placement: &clusterv1beta1.Placement{Spec: tc.spec}})
			if tc.want == "" {
				require.NoError(t, p.misconfigured)
				return
			}
			require.ErrorContains(t, p.misconfigured, tc.want)
			assert.Empty(t, p.layout.Slices, "the decisions are left alone")
		})
	}
}

func TestABadFieldIsNamed(t *testing.T) {
	selector := func(s clusterv1beta1.ClusterSelector) clusterv1beta1.PlacementSpec {
		return clusterv1beta1.PlacementSpec{Predicates: []clusterv1beta1.ClusterPredicate{{}, {RequiredClusterSelector: s}}}
	}
	tests := map[string]struct {
		spec clusterv1beta1.PlacementSpec
		want string
	}{
		"an operator that is none":     {selector(labelled(by("a", "Like", "x"))), "spec.predicates[1].requiredClusterSelector.labelSelector"},
		"In without values":            {selector(claimed(by("a", "In"))), "spec.predicates[1].requiredClusterSelector.claimSelector"},
		"a toleration without a key":   {clusterv1beta1.PlacementSpec{Tolerations: []clusterv1beta1.Toleration{{}}}, "spec.tolerations[0]: key"},
		"a value with operator Exists": {clusterv1beta1.PlacementSpec{Tolerations: []clusterv1beta1.Toleration{{Operator: "Exists", Value: "x"}}}, "spec.tolerations[0]: value"},
		"an unknown operator":          {clusterv1beta1.PlacementSpec{Tolerations: []clusterv1beta1.Toleration{{Operator: "Lt", Key: "x"}}}, "spec.tolerations[0]: operator"},
		"a negative time": {clusterv1beta1.PlacementSpec{Tolerations: []clusterv1beta1.Toleration{
			{Operator: "Exists", TolerationSeconds: new(int64(-1))},
		}}, "spec.tolerations[0]: tolerationSeconds"},
	}
	for sentence, tc := range tests {
		t.Run(sentence, func(t *testing.T) {
			require.ErrorContains(t, parse(tc.spec, new(memory).compile).misconfigured, tc.want)
		})
	}
}
