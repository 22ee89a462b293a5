package cluster

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
)

func managed(names ...string) []clusterv1.ClusterSetManagedNamespaceConfig {
	var entries []clusterv1.ClusterSetManagedNamespaceConfig
	for _, name := range names {
		entries = append(entries, clusterv1.ClusterSetManagedNamespaceConfig{
			ManagedNamespaceConfig: clusterv1.ManagedNamespaceConfig{Name: name}, ClusterSet: "set",
		})
	}
	return entries
}

func TestTheLabelOfAHubFitsIntoALabel(t *testing.T) {
	label := managedLabel("https://hub.example.com:6443")
	assert.Empty(t, validation.IsQualifiedName(label))
	assert.Regexp(t, `^clusterset\.open-cluster-management\.io/[0-9a-f]{63}$`, label)
	assert.NotEqual(t, label, managedLabel("https://hub.example.com"))
	// sha256 of the empty text is known to everybody.
	assert.Equal(t, "clusterset.open-cluster-management.io/"+
		"e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b85", managedLabel(""))
}

// Shows: registration/cluster-status
func TestMarkings(t *testing.T) {
	tests := map[string]struct {
		wanted []string
		have   []namespace
		want   []marking
	}{
		"nothing managed, nothing marked": {},
		"a namespace that is not marked is, in the order of the names": {
			wanted: []string{"b", "a"}, want: []marking{{name: "a", managed: true}, {name: "b", managed: true}},
		},
		"a namespace that is marked is left alone": {wanted: []string{"a"}, have: []namespace{{name: "a", label: "true"}}},
		"one that was let go comes back": {
			wanted: []string{"a"}, have: []namespace{{name: "a", label: "false"}}, want: []marking{{name: "a", managed: true}},
		},
		"a strange value is put right": {
			wanted: []string{"a"}, have: []namespace{{name: "a", label: "maybe"}}, want: []marking{{name: "a", managed: true}},
		},
		"two cluster sets share a namespace": {
			wanted: []string{"a", "a"}, want: []marking{{name: "a", managed: true}},
		},
		"one that is no longer managed is let go": {
			wanted: []string{"a"}, have: []namespace{{name: "a", label: "true"}, {name: "b", label: "true"}},
			want: []marking{{name: "b"}},
		},
		"once":                                 {have: []namespace{{name: "b", label: "false"}}},
		"what is on its way out is not marked": {wanted: []string{"a"}, have: []namespace{{name: "a", deleting: true}}},
		"nor let go":                           {have: []namespace{{name: "a", label: "true", deleting: true}}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, tc.want, markings(managed(tc.wanted...), tc.have))
		})
	}
}

func TestDecideAboutNamespaces(t *testing.T) {
	marked := []namespace{{name: "old", label: "true"}}
	cluster := func(change func(c *clusterv1.ManagedCluster)) *clusterv1.ManagedCluster {
		c := acceptedCluster()
		c.Status.ManagedNamespaces = managed("new")
		change(c)
		return c
	}
	nothing := func(*clusterv1.ManagedCluster) {}
	deleting := func(c *clusterv1.ManagedCluster) { c.DeletionTimestamp = &metav1.Time{Time: noon} }
	denied := func(c *clusterv1.ManagedCluster) { c.Status.Conditions[0].Status = metav1.ConditionFalse }
	clockOff := func(c *clusterv1.ManagedCluster) {
		c.Status.Conditions = append(c.Status.Conditions,
			condition(clusterv1.ManagedClusterConditionClockSynced, metav1.ConditionFalse, "ManagedClusterClockOutOfSync"))
	}
	letGo, follow := []marking{{name: "old"}}, []marking{{name: "new", managed: true}, {name: "old"}}
	tests := map[string]struct {
		facts facts
		want  []marking
		beats bool
	}{
		"the hub is followed":                     {facts{cluster: cluster(nothing), health: healthy()}, follow, true},
		"not before the first probe":              {facts{cluster: cluster(nothing)}, nil, true},
		"not while the API server is not well":    {facts{cluster: cluster(nothing), health: failingFor(1)}, nil, true},
		"a clock that is off has no say in it":    {facts{cluster: cluster(clockOff), health: healthy()}, follow, true},
		"a denied cluster keeps what it has":      {facts{cluster: cluster(denied), health: healthy()}, nil, false},
		"a cluster on its way out lets all go":    {facts{cluster: cluster(deleting), health: healthy()}, letGo, true},
		"a denied one on its way out, too":        {facts{cluster: cluster(func(c *clusterv1.ManagedCluster) { denied(c); deleting(c) })}, letGo, false},
		"one that is gone, too":                   {facts{gone: true}, letGo, false},
		"one that only a cache does not have":     {facts{}, nil, false},
		"one whose API server is unwell tries it": {facts{cluster: cluster(deleting), health: failingFor(1)}, letGo, true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			tc.facts.now, tc.facts.namespaces = noon, marked
			p := decide(tc.facts)
			assert.Equal(t, tc.want, p.markings)
			assert.Equal(t, tc.beats, p.heartbeat > 0)
		})
	}
}

func TestConcludeTellsHowEachNamespaceIs(t *testing.T) {
	cluster := acceptedCluster()
	cluster.Status.ManagedNamespaces = managed("fine", "refused", "leaving")
	f := facts{now: noon, cluster: cluster, health: healthy(), namespaces: []namespace{{name: "leaving", deleting: true}}}
	results := map[string]error{"fine": nil, "refused": errors.New("no right to do so")}
	after := conclude(f, decide(f), results)
	want := map[string]metav1.Condition{
		"fine": {Status: metav1.ConditionTrue, Reason: "NamespaceApplied"},
		"refused": {
			Status: metav1.ConditionFalse, Reason: "NamespaceApplyFailed", Message: "no right to do so",
		},
		"leaving": {Status: metav1.ConditionFalse, Reason: "NamespaceApplyFailed"},
	}
	require.Len(t, after.Status.ManagedNamespaces, 3)
	for _, entry := range after.Status.ManagedNamespaces {
		got := meta.FindStatusCondition(entry.Conditions, "NamespaceAvailable")
		require.NotNil(t, got, entry.Name)
		assert.Equal(t, want[entry.Name].Status, got.Status, entry.Name)
		assert.Equal(t, want[entry.Name].Reason, got.Reason, entry.Name)
		assert.Contains(t, got.Message, want[entry.Name].Message, entry.Name)
	}
	f.cluster = after
	assert.Equal(t, after, conclude(f, decide(f), results), "a second pass changes nothing")

	f.cluster = cluster.DeepCopy()
	f.cluster.DeletionTimestamp = &metav1.Time{Time: noon}
	assert.Equal(t, cluster.Status.ManagedNamespaces, conclude(f, decide(f), nil).Status.ManagedNamespaces,
		"of a cluster on its way out nothing is said any more")
}
