package placement

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
)

// TestAnExpressionThatWasNotAskedMakesNoClusterExpensive: an event has no time to compile the first expression, which
// the cluster matches, and the second one costs too much. That is not an answer for the next pass.
func TestAnExpressionThatWasNotAskedMakesNoClusterExpensive(t *testing.T) {
	m := &memory{}
	first, second := "managedCluster.metadata.name == 'x'", deep(5)
	spec := clusterv1beta1.PlacementSpec{Predicates: []clusterv1beta1.ClusterPredicate{byCEL(first), byCEL(second)}}
	observer(m, "p", spec, setGlobal)
	cluster := &clusterv1.ManagedCluster{Spec: clusterv1.ManagedClusterSpec{HubAcceptsClient: true}}
	cluster.Name, cluster.UID, cluster.ResourceVersion = "x", "u", "1"
	judged := func(of *clusterv1.ManagedCluster) (v verdict) {
		m.those(func(in interest) (string, bool) {
			if in.rules.expressions && len(in.rules.predicates) == 2 {
				v = in.judge(of)
			}
			return "", false
		})
		return v
	}
	require.True(t, judged(cluster).matches, "the control: a pass, of an earlier version of the cluster")

	// Others have so many expressions that the first is not kept any more. The second is.
	for i := 0; m.programs.Has(first) || !m.programs.Has(second); i++ {
		require.Less(t, i, 5000)
		_, err := m.compile("other", fmt.Sprintf("managedCluster.metadata.name == '%d%s'", i, strings.Repeat("x", 2000)))
		require.NoError(t, err)
		if !m.programs.Has(second) {
			_, err := m.compile("p", second) // of a pass of another Placement of the tenant
			require.NoError(t, err)
		}
	}
	newer := cluster.DeepCopy()
	newer.ResourceVersion, newer.Labels = "2", map[string]string{"a": "b"}
	concerned := m.concernedBy(cluster, newer)
	assert.Len(t, concerned, 1, "what could not be evaluated counts as a change")
	now := judged(newer)
	assert.True(t, now.matches, "the next pass: %+v", now.outcome)
	assert.Empty(t, now.expensive)
}
