package placement

import (
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	clusterv1beta2 "open-cluster-management.io/api/cluster/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// observer is a Placement in a namespace to which sets are bound, remembered as after a pass.
func observer(m *memory, name string, spec clusterv1beta1.PlacementSpec, sets ...string) {
	f := setFacts()
	f.placement.Name, f.placement.Spec, f.bindings = name, spec, bound(sets...)
	key := client.ObjectKeyFromObject(f.placement)
	f.rules = m.rulesOf(f.placement, key)
	m.remember(f.placement, key, interestOf(f))
}

func where(selectors ...clusterv1beta1.ClusterSelector) clusterv1beta1.PlacementSpec {
	var spec clusterv1beta1.PlacementSpec
	for _, s := range selectors {
		spec.Predicates = append(spec.Predicates, clusterv1beta1.ClusterPredicate{RequiredClusterSelector: s})
	}
	return spec
}

// TestWhichPlacementsAChangeOfAClusterConcerns has placements with an interest each.
func TestWhichPlacementsAChangeOfAClusterConcerns(t *testing.T) {
	const addOn = "feature.open-cluster-management.io/addon-hello"
	m := &memory{}
	observer(m, "all", clusterv1beta1.PlacementSpec{}, setGlobal)
	observer(m, "blue", clusterv1beta1.PlacementSpec{}, "blue")
	observer(m, "red", clusterv1beta1.PlacementSpec{}, "red")
	observer(m, "prod", where(labelled(by("env", "In", "prod"))), setGlobal)
	observer(m, "claim", where(claimed(by("gpu", "Exists"))), setGlobal)
	observer(m, "hello", where(labelled(by(addOn, "In", "available"))), setGlobal)
	observer(m, "cel", where(byCEL(`managedCluster.status.version.?kubernetes.orValue("") == "v1"`).RequiredClusterSelector), setGlobal)
	observer(m, "dear", where(byCEL(`[0, 1, 2, 3, 4, 5, 6, 7, 8, 9].all(a, [0, 1, 2, 3, 4, 5, 6, 7, 8, 9].all(b, `+
		`[0, 1, 2, 3, 4, 5, 6, 7, 8, 9].all(c, a + b + c != 28))) && false`).RequiredClusterSelector), setGlobal)
	observer(m, "wrong", where(byCEL("wrong(").RequiredClusterSelector), setGlobal)
	grouped := newWorld(number(3), "one")
	observer(m, "grouped", grouped.spec, setGlobal)
	observer(m, "unbound", clusterv1beta1.PlacementSpec{})

	base := &clusterv1.ManagedCluster{Spec: clusterv1.ManagedClusterSpec{HubAcceptsClient: true}, ObjectMeta: metav1.ObjectMeta{Name: "x", Labels: map[string]string{
		clusterv1beta2.ClusterSetLabel: "blue", "env": "dev",
	}}}
	selecting := []string{"all", "blue", "grouped"}
	// Whether any cluster is in the sets is part of a condition.
	withSets := append([]string{"prod", "claim", "hello", "cel", "dear"}, selecting...)
	tests := map[string]struct {
		change func(*clusterv1.ManagedCluster)
		want   []string
	}{
		"the acceptance": {func(c *clusterv1.ManagedCluster) { c.Spec.HubAcceptsClient = false }, withSets},
		"nothing":        {func(*clusterv1.ManagedCluster) {}, nil},
		"a label that nobody looks at": {func(c *clusterv1.ManagedCluster) {
			c.Labels["feature.open-cluster-management.io/addon-other"] = "available"
		}, nil},
		"a label of one add-on":         {func(c *clusterv1.ManagedCluster) { c.Labels[addOn] = "available" }, []string{"hello"}},
		"a value that changes no match": {func(c *clusterv1.ManagedCluster) { c.Labels[addOn] = "unhealthy" }, nil},
		"a label of a predicate":        {func(c *clusterv1.ManagedCluster) { c.Labels["env"] = "prod" }, []string{"prod"}},
		"a label of a decision group":   {func(c *clusterv1.ManagedCluster) { c.Labels["ring"] = "one" }, []string{"grouped"}},
		"the set":                       {func(c *clusterv1.ManagedCluster) { c.Labels[clusterv1beta2.ClusterSetLabel] = "red" }, []string{"blue", "red"}},
		"a claim": {func(c *clusterv1.ManagedCluster) {
			c.Status.ClusterClaims = []clusterv1.ManagedClusterClaim{{Name: "gpu"}}
		}, []string{"claim"}},
		"a claim that nobody looks at": {func(c *clusterv1.ManagedCluster) {
			c.Status.ClusterClaims = []clusterv1.ManagedClusterClaim{{Name: "cpu"}}
		}, nil},
		"what an expression looks at":                                        {func(c *clusterv1.ManagedCluster) { c.Status.Version.Kubernetes = "v1" }, []string{"cel"}},
		"what it does not look at":                                           {func(c *clusterv1.ManagedCluster) { c.Status.Conditions = []metav1.Condition{{Type: "x"}} }, nil},
		"a taint, those that select it, or may keep it because of its costs": {func(c *clusterv1.ManagedCluster) { c.Spec.Taints = []clusterv1.Taint{{Key: "x"}} }, append([]string{"dear"}, selecting...)},
		"its end, those whose sets have it":                                  {func(c *clusterv1.ManagedCluster) { c.DeletionTimestamp = &metav1.Time{Time: noon()} }, withSets},
		"an annotation":                                                      {func(c *clusterv1.ManagedCluster) { c.Annotations = map[string]string{"a": "b"} }, nil},
	}
	named := func(placements touched) []string {
		var all []string
		for key := range placements {
			all = append(all, key.Name)
		}
		return all
	}
	for sentence, tc := range tests {
		t.Run(sentence, func(t *testing.T) {
			changed := base.DeepCopy()
			tc.change(changed)
			assert.ElementsMatch(t, tc.want, named(m.concernedBy(base, changed)))
			assert.ElementsMatch(t, tc.want, named(m.concernedBy(changed, base)), "and back")
		})
	}
	assert.ElementsMatch(t, withSets, named(m.concernedBy(nil, base)), "a new cluster")
	assert.ElementsMatch(t, withSets, named(m.concernedBy(base, nil)), "a cluster that is gone")
	assert.ElementsMatch(t, []string{"red"}, named(m.boundTo("red")))
	m.forget(types.NamespacedName{Namespace: "ns", Name: "all"})
	assert.NotContains(t, named(m.concernedBy(nil, base)), "all")
}

func TestOutcomesAreRememberedForEachVersionOfACluster(t *testing.T) {
	r := parse(where(byCEL(`managedCluster.metadata.labels.env == "prod"`).RequiredClusterSelector), new(memory).compile)
	c := everyCluster()[1]
	c.UID, c.ResourceVersion = "a", "1"
	assert.True(t, r.known.outcomeOf(&view{cluster: c}, r).matches)
	c.Labels["env"] = "dev"
	assert.True(t, r.known.outcomeOf(&view{cluster: c}, r).matches, "nothing is evaluated for a version that is known")
	c.ResourceVersion = "2"
	assert.False(t, r.known.outcomeOf(&view{cluster: c}, r).matches)
	for i := range maxOutcomes + 1 {
		c.UID = types.UID(strconv.Itoa(i))
		r.known.outcomeOf(&view{cluster: c}, r)
	}
	assert.LessOrEqual(t, r.known.Len(), maxOutcomes)
}

func TestRulesAreParsedOncePerGeneration(t *testing.T) {
	m := &memory{}
	f := celFacts(byCEL("true"))
	key := client.ObjectKeyFromObject(f.placement)
	f.rules = m.rulesOf(f.placement, key)
	m.remember(f.placement, key, interestOf(f))
	assert.Same(t, f.rules, m.rulesOf(f.placement, key))
	f.placement.Generation++
	assert.NotSame(t, f.rules, m.rulesOf(f.placement, key), "the spec changed")
	f.placement.Generation--
	f.placement.UID = "another"
	assert.NotSame(t, f.rules, m.rulesOf(f.placement, key), "another one of the same name")
	require.NotNil(t, m.environment)
}

func TestWhetherAPlacementDecidesTheSameAboutTwoCopiesOfACluster(t *testing.T) {
	base := &clusterv1.ManagedCluster{Spec: clusterv1.ManagedClusterSpec{HubAcceptsClient: true}, ObjectMeta: metav1.ObjectMeta{
		Name: "x", UID: "x", ResourceVersion: "1", Labels: map[string]string{clusterv1beta2.ClusterSetLabel: "blue", "env": "dev"},
	}}
	claim := func(c *clusterv1.ManagedCluster) {
		c.Status.ClusterClaims = []clusterv1.ManagedClusterClaim{{Name: "gpu", Value: "1"}}
	}
	version := func(c *clusterv1.ManagedCluster) { c.Status.Version.Kubernetes = "v1" }
	for sentence, tt := range map[string]struct {
		spec   clusterv1beta1.PlacementSpec
		change func(*clusterv1.ManagedCluster)
		want   bool
	}{
		"a status that nobody looks at":    {where(claimed(by("gpu", "Exists"))), version, true},
		"a claim that is looked at":        {where(claimed(by("gpu", "Exists"))), claim, false},
		"a claim that is not looked at":    {where(labelled(by("env", "In", "dev"))), claim, true},
		"what an expression looks at":      {where(byCEL(`managedCluster.status.version.?kubernetes.orValue("") == "v1"`).RequiredClusterSelector), version, false},
		"what an expression does not mind": {where(byCEL(`managedCluster.status.version.?kubernetes.orValue("") == "v2"`).RequiredClusterSelector), version, true},
		"why an expression fails":          {where(byCEL(`managedCluster.status.clusterClaims[0].value == "2"`).RequiredClusterSelector), claim, true},
		"an expression that is wrong":      {where(byCEL("wrong(").RequiredClusterSelector), version, true},
		"another set":                      {clusterv1beta1.PlacementSpec{}, func(c *clusterv1.ManagedCluster) { c.Labels = nil }, false},
		"a taint": {clusterv1beta1.PlacementSpec{}, func(c *clusterv1.ManagedCluster) {
			c.Spec.Taints = []clusterv1.Taint{{Key: "a", Effect: clusterv1.TaintEffectNoSelect}}
		}, false},
		"a denial": {clusterv1beta1.PlacementSpec{}, func(c *clusterv1.ManagedCluster) { c.Spec.HubAcceptsClient = false }, false},
	} {
		t.Run(sentence, func(t *testing.T) {
			m := &memory{}
			observer(m, "p", tt.spec, "blue")
			other := base.DeepCopy()
			other.ResourceVersion = "2"
			tt.change(other)
			key := types.NamespacedName{Namespace: setFacts().placement.Namespace, Name: "p"}
			assert.Equal(t, tt.want, m.decidesAlike(key, other, base))
			key.Name = "unknown"
			assert.False(t, m.decidesAlike(key, other, base), "nothing is known of it")
		})
	}
}
