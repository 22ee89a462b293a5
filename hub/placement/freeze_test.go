package placement

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// The agent of c0001 writes what it may, an address or a label of its own, between the read of the cache and the live
// read of each pass. Its own cluster is dropped; c0000 loses its label, too, and c0003 gets it.
func TestOneAgentThatWritesAllTheTimeHoldsUpNoPlacement(t *testing.T) {
	for how, write := range map[string]func(*clusterv1.ManagedCluster){
		"an address": func(c *clusterv1.ManagedCluster) { c.Generation++ },
		"a label of its own": func(c *clusterv1.ManagedCluster) {
			c.Labels = map[string]string{"agent.open-cluster-management.io/n": "1"}
		},
	} {
		t.Run(how, func(t *testing.T) {
			hub, r, key := hubOf(t, 4, interceptor.Funcs{})
			edit(t, hub, key, &clusterv1beta1.Placement{}, func(p *clusterv1beta1.Placement) {
				p.Spec.Predicates = []clusterv1beta1.ClusterPredicate{{}}
				p.Spec.Predicates[0].RequiredClusterSelector.LabelSelector.MatchLabels = wantedLabels()
			})
			label := func(labels map[string]string, names ...string) {
				for _, name := range names {
					edit(t, hub, client.ObjectKey{Name: name}, &clusterv1.ManagedCluster{},
						func(c *clusterv1.ManagedCluster) { c.Labels = labels })
				}
			}
			label(wantedLabels(), "c0000", "c0001", "c0002")
			passOf(t, r, key)
			passOf(t, r, key)
			require.Subset(t, union(pagesOf(t, hub)), []string{"c0000", "c0001", "c0002"})
			label(nil, "c0000", "c0001")
			label(wantedLabels(), "c0003")
			r.Live = ahead{hub, func(_ *clusterv1beta1.Placement, c *clusterv1.ManagedCluster) {
				if c.Name == "c0001" {
					write(c)
				}
			}}
			for range 100 {
				_, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: key})
				require.NoError(t, err)
			}
			assert.NotContains(t, union(pagesOf(t, hub)), "c0000", "a cluster of others is dropped")
			assert.Contains(t, union(pagesOf(t, hub)), "c0003", "a new cluster is selected")
		})
	}
}

// The cache shows three clusters without their labels, which the API server has again. Each takes the place of another
// one, so the pass decides again and again.
func TestAPassThatDecidesAgainEnds(t *testing.T) {
	hub, r, key := hubOf(t, 9, interceptor.Funcs{})
	selecting(t, hub, key, clusters(0, 9))
	edit(t, hub, key, &clusterv1beta1.Placement{}, func(p *clusterv1beta1.Placement) { p.Spec.NumberOfClusters = new(int32(9)) })
	passOf(t, r, key)
	passOf(t, r, key)
	require.Len(t, union(pagesOf(t, hub)), 9)
	for _, name := range clusters(0, 3) {
		edit(t, hub, client.ObjectKey{Name: name}, &clusterv1.ManagedCluster{}, func(c *clusterv1.ManagedCluster) { c.Labels = nil })
	}
	edit(t, hub, key, &clusterv1beta1.Placement{}, func(p *clusterv1beta1.Placement) { p.Spec.NumberOfClusters = new(int32(6)) })
	r.Live = ahead{hub, func(_ *clusterv1beta1.Placement, c *clusterv1.ManagedCluster) { c.Labels = wantedLabels() }}
	passOf(t, r, key)
	assert.ElementsMatch(t, clusters(0, 6), union(pagesOf(t, hub)), "those with the first names, by what the API server has")
}
