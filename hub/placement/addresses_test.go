package placement

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// An agent may write the addresses of its cluster, which are in the spec. That of c0001 does so all the time, so that the
// API server always has a later generation than the cache. Its cluster and another one lose their labels, and one joins.
func TestAnAgentThatWritesAddressesAllTheTimeDoesNotHoldUpAPlacement(t *testing.T) {
	hub, r, key := hubOf(t, 3, interceptor.Funcs{})
	selecting(t, hub, key, clusters(0, 3))
	passOf(t, r, key)
	passOf(t, r, key)
	require.Subset(t, union(pagesOf(t, hub)), []string{"c0001", "c0002"})
	r.Live = ahead{hub, func(_ *clusterv1beta1.Placement, c *clusterv1.ManagedCluster) {
		if c.Name == "c0001" {
			c.Generation++
			c.Spec.ManagedClusterClientConfigs = []clusterv1.ClientConfig{{URL: "https://c0001.example.com"}}
		}
	}}
	for _, name := range []string{"c0001", "c0002"} {
		edit(t, hub, client.ObjectKey{Name: name}, &clusterv1.ManagedCluster{}, func(c *clusterv1.ManagedCluster) { c.Labels = nil })
	}
	fresh := &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: "c0009", Labels: wantedLabels()}}
	fresh.Spec.HubAcceptsClient = true
	require.NoError(t, hub.Create(t.Context(), fresh))
	for range 5 {
		passOf(t, r, key)
	}
	selected := union(pagesOf(t, hub))
	assert.Contains(t, selected, "c0009", "whoever joins is selected")
	assert.NotContains(t, selected, "c0002", "nobody selects it")
	assert.NotContains(t, selected, "c0001", "its labels and taints are those of the cache")
}
