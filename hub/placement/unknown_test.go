package placement

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// The agent of c0001 says so much that the expressions of the Placement cost too much for it. It keeps its place, until
// the Placement is deleted and created again, as GitOps tools do: then there is no place to keep.
//
// Shows: invariants/selected-stays
func TestAClusterThatCannotBeJudgedKeepsItsAddOn(t *testing.T) {
	const judged = "c0001"
	b := newBoth(t, func(s *clusterv1beta1.PlacementSpec) {
		s.Predicates = []clusterv1beta1.ClusterPredicate{{}}
		s.Predicates[0].RequiredClusterSelector.CelSelector.CelExpressions = []string{
			"!has(managedCluster.status.clusterClaims) || managedCluster.status.clusterClaims.all(c, " +
				"managedCluster.status.clusterClaims.all(d, c.name == d.name || c.value != 'left'))",
		}
	})
	says := func(claims ...clusterv1.ManagedClusterClaim) {
		cluster := &clusterv1.ManagedCluster{}
		require.NoError(t, b.live.Get(t.Context(), client.ObjectKey{Name: judged}, cluster))
		cluster.Status.ClusterClaims = claims
		require.NoError(t, b.live.Update(t.Context(), cluster))
	}
	var many []clusterv1.ManagedClusterClaim
	for i := range 1000 {
		many = append(many, clusterv1.ManagedClusterClaim{Name: fmt.Sprint("claim-", i), Value: "stays"})
	}
	says(many...)
	b.runs(5 * time.Second)
	require.Contains(t, b.selected(), judged, "it keeps its place")

	placement := &clusterv1beta1.Placement{}
	require.NoError(t, b.live.Get(t.Context(), b.key, placement))
	require.NoError(t, b.live.Delete(t.Context(), placement))
	for _, page := range pagesOf(t, b.live) {
		require.NoError(t, b.live.Delete(t.Context(), page))
	}
	b.runs(5 * time.Second)
	placement.ResourceVersion, placement.UID = "", types.UID("again")
	placement.Status = clusterv1beta1.PlacementStatus{}
	require.NoError(t, b.live.Create(t.Context(), placement))
	b.looks() // its handlers note whom the pages that went selected
	b.runs(10 * time.Second)
	assert.Len(t, b.selected(), manyClusters-1, "there is nothing by which it has a place")
	assert.Equal(t, manyClusters, b.left(), "whether it is selected is unknown")

	b.starts()
	b.runs(10 * time.Second)
	assert.Equal(t, manyClusters, b.left(), "nor does another process know it")

	says(clusterv1.ManagedClusterClaim{Name: "state", Value: "left"}, clusterv1.ManagedClusterClaim{Name: "other"})
	b.runs(2 * time.Minute)
	assert.Len(t, b.selected(), manyClusters-1)
	assert.Equal(t, manyClusters-1, b.left(), "now it is known, and it is not selected")
}
