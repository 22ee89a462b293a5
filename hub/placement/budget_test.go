package placement

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
)

// Shows: hub/expensive-clusters
func TestTheClustersThatCostTheMostPayForTheFleet(t *testing.T) {
	const own = "their own limit"
	tests := map[string]struct {
		bad        int
		bads, good verdict
		failing    int // of the bad ones
		fails      bool
	}{
		"what fits costs nobody anything": {bad: 300, bads: verdict{outcome: outcome{cost: 19_999}}},
		"those above the limit of one cluster count for no other": {
			bad: 1400, bads: verdict{outcome: outcome{cost: 20_001, expensive: own}}, failing: 1400,
		},
		"of those just below it, as many fail as have to": {
			bad: 1400, bads: verdict{outcome: outcome{cost: 19_000}}, good: verdict{outcome: outcome{cost: 1000}}, failing: 958,
		},
		"an expression that costs more than a share for most clusters is itself the cause": {
			bad: 1600, bads: verdict{outcome: outcome{cost: 19_000}}, good: verdict{outcome: outcome{cost: 4000}}, fails: true,
		},
		"also where it is above the limit of most": {
			bad: 2000, bads: verdict{outcome: outcome{cost: 20_001, expensive: own}}, fails: true,
		},
	}
	for sentence, tc := range tests {
		t.Run(sentence, func(t *testing.T) {
			clusters := make([]*clusterv1.ManagedCluster, 3000)
			for n := range clusters {
				clusters[n] = &clusterv1.ManagedCluster{}
				clusters[n].Name = fmt.Sprintf("good-%04d", n)
				if n < tc.bad {
					clusters[n].Name = fmt.Sprintf("bad-%04d", n)
				}
			}
			rand.Shuffle(len(clusters), func(i, j int) { clusters[i], clusters[j] = clusters[j], clusters[i] })
			bad := func(c *clusterv1.ManagedCluster) bool { return strings.HasPrefix(c.Name, "bad-") }
			verdicts, err := judgeAll(func(c *clusterv1.ManagedCluster) verdict {
				v := tc.good
				if bad(c) {
					v = tc.bads
				}
				v.inSets, v.matches = true, v.expensive == ""
				return v
			}, clusters)
			if tc.fails {
				require.ErrorContains(t, err, "cost more than 10000000 units of CEL for all clusters together")
				return
			}
			require.NoError(t, err)
			failing := 0
			for i, v := range verdicts {
				if v.expensive == "" {
					continue
				}
				failing++
				require.True(t, bad(clusters[i]), "no other cluster pays")
				require.Less(t, clusters[i].Name, fmt.Sprintf("bad-%04d", tc.failing), "the same, whatever their order is")
			}
			assert.Equal(t, tc.failing, failing)
		})
	}
}
