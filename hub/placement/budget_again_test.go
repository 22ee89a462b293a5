package placement

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
)

// A cluster that fails only because of what it costs matches as soon as it costs less. That is a change of the decisions.
func TestAClusterThatCostsLessIsDecidedAgain(t *testing.T) {
	m := &memory{}
	observer(m, "cel", where(byCEL(`managedCluster.status.clusterClaims.all(c, c.value != "never")`).RequiredClusterSelector), setGlobal)
	with := func(claims int) *clusterv1.ManagedCluster {
		c := &clusterv1.ManagedCluster{
			ObjectMeta: metav1.ObjectMeta{Name: "x"}, Spec: clusterv1.ManagedClusterSpec{HubAcceptsClient: true},
		}
		for n := range claims {
			c.Status.ClusterClaims = append(c.Status.ClusterClaims, clusterv1.ManagedClusterClaim{Name: fmt.Sprint(n), Value: "v"})
		}
		return c
	}
	var in interest
	for _, known := range m.placements {
		in = known.interest
	}
	older, newer := with(1200), with(3)
	was, is := in.judge(older), in.judge(newer)
	t.Log("costs", was.cost, "then", is.cost)
	require.Empty(t, was.expensive)
	require.True(t, was.matches && is.matches)
	// 1,400 of 3,000 clusters have so many claims, and the agent of one of them is mended.
	fleet := slices.Repeat([]*clusterv1.ManagedCluster{older}, 3000)
	fails := func(mended bool) bool {
		n := 0
		verdicts, err := judgeAll(func(*clusterv1.ManagedCluster) verdict {
			n++
			if n > 1400 || (n == 1 && mended) {
				return is
			}
			return was
		}, fleet)
		require.NoError(t, err)
		return verdicts[0].expensive != ""
	}
	require.True(t, fails(false))
	require.False(t, fails(true))
	assert.NotEmpty(t, m.concernedBy(older, newer), "nobody decides again, and the cluster stays unselected")
}
