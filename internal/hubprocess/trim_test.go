package hubprocess

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"github.com/spokelet/spokelet/internal/names"
)

// largest is a cluster as anybody may create it, with a status as an agent may report it.
func largest(accepted bool) *clusterv1.ManagedCluster {
	cluster := &clusterv1.ManagedCluster{
		ObjectMeta: metav1.ObjectMeta{Name: "c", Annotations: map[string]string{
			"agent.open-cluster-management.io/x": strings.Repeat("x", 8000), names.AnnotationKeepUnaccepted: "k",
		}},
		Spec: clusterv1.ManagedClusterSpec{HubAcceptsClient: accepted},
	}
	for n := range 8 {
		cluster.Spec.ManagedClusterClientConfigs = append(cluster.Spec.ManagedClusterClientConfigs, clusterv1.ClientConfig{
			URL: strings.Repeat("u", 2000), CABundle: make([]byte, 30_000),
		})
		for m := range 100 {
			cluster.Status.ClusterClaims = append(cluster.Status.ClusterClaims, clusterv1.ManagedClusterClaim{
				Name: fmt.Sprintf("%d-%d", n, m), Value: strings.Repeat("v", 1000),
			})
		}
	}
	return cluster
}

// Shows: security/unaccepted-clusters-small
func TestLittleIsKeptOfAClusterThatNobodyAccepted(t *testing.T) {
	for _, accepted := range []bool{true, false} {
		cluster, trims := largest(accepted), &Trims{}
		for range 2 { // a cache may trim an object twice
			_, err := trims.Cluster(cluster)
			require.NoError(t, err)
		}
		claims := 0
		for _, c := range cluster.Status.ClusterClaims {
			claims += len(c.Name) + len(c.Value)
		}
		assert.LessOrEqual(t, claims, maxClaims)
		assert.Greater(t, claims, maxClaims-2000)
		assert.Equal(t, "k", cluster.Annotations[names.AnnotationKeepUnaccepted])
		if accepted {
			assert.Len(t, cluster.Annotations, 2)
			assert.Len(t, cluster.Spec.ManagedClusterClientConfigs, 8)
			continue
		}
		assert.Len(t, cluster.Annotations, 1)
		assert.Empty(t, cluster.Spec.ManagedClusterClientConfigs)
	}
}
