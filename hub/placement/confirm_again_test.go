package placement

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	clusterv1beta2 "open-cluster-management.io/api/cluster/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/spokelet/spokelet/hub/fleet"
	"github.com/spokelet/spokelet/internal/names"
)

// selecting lets the Placement select by label, and labels all clusters.
func selecting(t *testing.T, hub client.Client, key client.ObjectKey, all []string) {
	t.Helper()
	edit(t, hub, key, &clusterv1beta1.Placement{}, func(p *clusterv1beta1.Placement) {
		p.Spec.Predicates = []clusterv1beta1.ClusterPredicate{{}}
		p.Spec.Predicates[0].RequiredClusterSelector.LabelSelector.MatchLabels = wantedLabels()
	})
	for _, name := range all {
		edit(t, hub, client.ObjectKey{Name: name}, &clusterv1.ManagedCluster{},
			func(c *clusterv1.ManagedCluster) { c.Labels = wantedLabels() })
	}
}

// A cluster has a taint NoSelectIfNew: it keeps what it has. For a moment the cache shows the cluster without the label
// that it has had all the time. The taint would keep it from being selected again.
//
// Shows: invariants/selected-stays
func TestAClusterThatIsSelectedOnlyBecauseItWasIsNotDroppedByAnEarlierVersion(t *testing.T) {
	hub, r, key := hubOf(t, 3, interceptor.Funcs{})
	selecting(t, hub, key, clusters(0, 3))
	passOf(t, r, key)
	passOf(t, r, key)
	edit(t, hub, client.ObjectKey{Name: "c0001"}, &clusterv1.ManagedCluster{}, func(c *clusterv1.ManagedCluster) {
		c.Spec.Taints = []clusterv1.Taint{{Key: "full", Effect: clusterv1.TaintEffectNoSelectIfNew}}
	})
	passOf(t, r, key)
	require.Contains(t, union(pagesOf(t, hub)), "c0001")

	// The cache has it without its label; the API server has it with its label.
	edit(t, hub, client.ObjectKey{Name: "c0001"}, &clusterv1.ManagedCluster{},
		func(c *clusterv1.ManagedCluster) { c.Labels = nil })
	r.Live = ahead{hub, func(_ *clusterv1beta1.Placement, c *clusterv1.ManagedCluster) { c.Labels = wantedLabels() }}
	passOf(t, r, key)
	// The cache sees the cluster as it is.
	edit(t, hub, client.ObjectKey{Name: "c0001"}, &clusterv1.ManagedCluster{},
		func(c *clusterv1.ManagedCluster) { c.Labels = wantedLabels() })
	for range 3 {
		passOf(t, r, key)
	}
	assert.Contains(t, union(pagesOf(t, hub)), "c0001", "it had its label all the time")
}

// An earlier version selected clusters without a binding; they stay until a user annotates the Placement. The cache shows
// an annotation that a user set by mistake and took away.
func TestClustersWithoutABindingStayWhenTheAnnotationIsOnlyInTheCache(t *testing.T) {
	hub, r, key := hubOf(t, 3, interceptor.Funcs{})
	for range 2 {
		passOf(t, r, key)
	}
	for _, page := range pagesOf(t, hub) { // as an earlier version wrote them
		edit(t, hub, client.ObjectKeyFromObject(page), &clusterv1beta1.PlacementDecision{}, func(d *clusterv1beta1.PlacementDecision) {
			delete(d.Annotations, names.AnnotationSetBindings)
			metav1.SetMetaDataAnnotation(&d.ObjectMeta, names.AnnotationStickyPages, "true")
		})
	}
	var binding clusterv1beta2.ManagedClusterSetBinding
	require.NoError(t, hub.Get(t.Context(), client.ObjectKey{Namespace: key.Namespace, Name: setGlobal}, &binding))
	require.NoError(t, hub.Delete(t.Context(), &binding))
	passOf(t, r, key)
	require.Contains(t, union(pagesOf(t, hub)), "c0001", "it stays without a binding")

	annotation := func(value string) {
		edit(t, hub, key, &clusterv1beta1.Placement{}, func(p *clusterv1beta1.Placement) {
			p.Annotations = nil
			if value != "" {
				p.Annotations = map[string]string{names.AnnotationSetBindings: value}
			}
		})
	}
	annotation(names.SetBindingsHonoured) // in the cache only
	r.Live = ahead{hub, func(p *clusterv1beta1.Placement, _ *clusterv1.ManagedCluster) { p.Annotations = nil }}
	passOf(t, r, key)
	annotation("")
	for range 3 {
		passOf(t, r, key)
	}
	assert.Contains(t, union(pagesOf(t, hub)), "c0001", "no user lets it go")
}

// The ClusterRole is of the version before ADR 0019, which may not get Placements. One cluster loses its label, and
// another one joins.
func TestAPlacementIsDecidedWithTheRightsOfAnEarlierVersion(t *testing.T) {
	for sentence, counted := range map[string]bool{"all clusters": false, "a number of clusters": true} {
		t.Run(sentence, func(t *testing.T) {
			hub, r, key := hubOf(t, 3, interceptor.Funcs{})
			selecting(t, hub, key, clusters(0, 3))
			if counted {
				edit(t, hub, key, &clusterv1beta1.Placement{}, func(p *clusterv1beta1.Placement) { p.Spec.NumberOfClusters = new(int32(10)) })
			}
			passOf(t, r, key)
			passOf(t, r, key)
			require.Contains(t, union(pagesOf(t, hub)), "c0001")
			r.Live = interceptor.NewClient(hub, interceptor.Funcs{
				Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
					return apierrors.NewForbidden(schema.GroupResource{Resource: "placements"}, "p", fmt.Errorf("no right to get it"))
				},
			})
			edit(t, hub, client.ObjectKey{Name: "c0001"}, &clusterv1.ManagedCluster{},
				func(c *clusterv1.ManagedCluster) { c.Labels = nil })
			fresh := &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: "c0009", Labels: wantedLabels()}}
			fresh.Spec.HubAcceptsClient = true
			require.NoError(t, hub.Create(t.Context(), fresh))
			passOf(t, r, key)
			assert.Contains(t, union(pagesOf(t, hub)), "c0009", "whoever joins is selected")
		})
	}
}

// A pass that drops a cluster looks at the sets that are bound in its namespace, not at the hundreds of others, and sees
// that one of them was edited.
func TestADropLooksAtTheBoundSetsOnly(t *testing.T) {
	for sentence, of := range map[string]struct{ bound, lists int }{
		"a set": {0, 1},
		"as many sets as are asked for one by one": {fleet.AskedEach - 1, fleet.AskedEach},
		"more sets, so all are listed":             {fleet.AskedEach, 1},
	} {
		t.Run(sentence, func(t *testing.T) {
			lists := 0
			hub, r, key := hubOf(t, 3, interceptor.Funcs{})
			selecting(t, hub, key, clusters(0, 3))
			for i := range 300 {
				set, binding := boundIn(key.Namespace, fmt.Sprintf("other-%03d", i))
				require.NoError(t, hub.Create(t.Context(), set))
				if i < of.bound {
					require.NoError(t, hub.Create(t.Context(), binding))
				}
			}
			passOf(t, r, key)
			r.Live = interceptor.NewClient(hub, interceptor.Funcs{
				List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
					if list.GetObjectKind().GroupVersionKind().Kind == "ManagedClusterSetList" {
						lists++
					}
					return c.List(ctx, list, options...)
				},
			})
			edit(t, hub, client.ObjectKey{Name: "c0001"}, &clusterv1.ManagedCluster{},
				func(c *clusterv1.ManagedCluster) { c.Labels = nil })
			passOf(t, r, key)
			assert.NotContains(t, union(pagesOf(t, hub)), "c0001")
			assert.Equal(t, of.lists, lists, "requests, of one page each")
		})
	}
}
