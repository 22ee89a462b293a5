package placement

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/spokelet/spokelet/hub/fleet"
	"github.com/spokelet/spokelet/internal/reconcile"
)

// Shows: invariants/selected-stays
func TestAPageDropsNoClusterByWhatOnlyTheCacheSays(t *testing.T) {
	for sentence, tc := range map[string]struct {
		// many is set for one that drops most of a fleet.
		many bool
		// tainted is set where the cache shows a cluster with a taint, and else one without its label.
		tainted bool
		// live changes what the API server has and the cache does not.
		live func(*clusterv1beta1.Placement, *clusterv1.ManagedCluster)
		lost bool
	}{
		"both have the same": {live: func(*clusterv1beta1.Placement, *clusterv1.ManagedCluster) {}},
		"the Placement was edited before the labels of the cluster": {
			live: func(p *clusterv1beta1.Placement, _ *clusterv1.ManagedCluster) { p.Generation++ }, lost: true,
		},
		"the Placement was replaced": {
			live: func(p *clusterv1beta1.Placement, _ *clusterv1.ManagedCluster) { p.UID = "other" }, lost: true,
		},
		"the Placement is scheduled by another program": {
			live: func(p *clusterv1beta1.Placement, _ *clusterv1.ManagedCluster) {
				p.Annotations = map[string]string{clusterv1beta1.PlacementDisableAnnotation: "true"}
			},
			lost: true,
		},
		"the Placement has more labels than the cache keeps": {
			live: func(p *clusterv1beta1.Placement, _ *clusterv1.ManagedCluster) { p.Labels = wantedLabels() },
		},
		"the cluster has its label again": {
			live: func(_ *clusterv1beta1.Placement, c *clusterv1.ManagedCluster) { c.Labels = wantedLabels() }, lost: true,
		},
		"the taint of the cluster is gone": {
			tainted: true, live: func(_ *clusterv1beta1.Placement, c *clusterv1.ManagedCluster) {
				c.Generation, c.Spec.Taints = c.Generation+1, noneButFull()
			}, lost: true,
		},
		"the cluster has another taint, and still no label": {
			live: func(_ *clusterv1beta1.Placement, c *clusterv1.ManagedCluster) {
				c.Generation, c.Spec.Taints = c.Generation+1, noneButFull()
			},
		},
		"one of many has its label again": {
			many: true, lost: true,
			live: func(_ *clusterv1beta1.Placement, c *clusterv1.ManagedCluster) {
				if c.Name == "c0001" {
					c.Labels = wantedLabels()
				}
			},
		},
		"many are as known": {
			many: true, live: func(*clusterv1beta1.Placement, *clusterv1.ManagedCluster) {},
		},
		"the agent says something else of the cluster": {
			live: func(_ *clusterv1beta1.Placement, c *clusterv1.ManagedCluster) { c.Status.ClusterClaims = nil },
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			selected, goes := 3, []string{"c0001"}
			if tc.many {
				selected, goes = fleet.AskedEach+5, clusters(1, fleet.AskedEach+3)
			}
			hub, r, key := hubOf(t, selected, interceptor.Funcs{})
			edit(t, hub, key, &clusterv1beta1.Placement{}, func(p *clusterv1beta1.Placement) {
				p.Spec.Predicates = []clusterv1beta1.ClusterPredicate{{}}
				p.Spec.Predicates[0].RequiredClusterSelector.LabelSelector.MatchLabels = wantedLabels()
			})
			for _, name := range clusters(0, selected) {
				edit(t, hub, client.ObjectKey{Name: name}, &clusterv1.ManagedCluster{},
					func(c *clusterv1.ManagedCluster) { c.Labels = wantedLabels() })
			}
			passOf(t, r, key)
			passOf(t, r, key)
			require.Contains(t, union(pagesOf(t, hub)), "c0001")

			for _, name := range goes {
				edit(t, hub, client.ObjectKey{Name: name}, &clusterv1.ManagedCluster{},
					func(c *clusterv1.ManagedCluster) {
						if c.Labels = nil; tc.tainted {
							c.Labels, c.Spec.Taints = wantedLabels(), []clusterv1.Taint{{Key: "full", Effect: clusterv1.TaintEffectNoSelect}}
						}
					})
			}
			r.Live = ahead{hub, tc.live}
			_, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: key})
			require.NoError(t, err, "a lost race is not an error")
			assert.Equal(t, tc.lost, slices.Contains(union(pagesOf(t, hub)), "c0001"))
		})
	}
}

// noneButFull is a taint that the cache does not have.
func noneButFull() []clusterv1.Taint {
	return []clusterv1.Taint{{Key: "full", Effect: clusterv1.TaintEffectNoSelectIfNew}}
}

// wantedLabels select a cluster.
func wantedLabels() map[string]string { return map[string]string{"wanted": "yes"} }

// ahead is an API server that has other objects than the cache.
type ahead struct {
	client.Reader

	change func(*clusterv1beta1.Placement, *clusterv1.ManagedCluster)
}

// Get reads metadata.
func (a ahead) Get(ctx context.Context, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	placement, cluster := &clusterv1beta1.Placement{}, &clusterv1.ManagedCluster{}
	var object client.Object = cluster
	if into.GetObjectKind().GroupVersionKind().Kind == "Placement" {
		object = placement
	}
	if err := a.Reader.Get(ctx, key, object); err != nil {
		return err
	}
	a.change(placement, cluster)
	switch into := into.(type) {
	case *clusterv1.ManagedCluster:
		cluster.DeepCopyInto(into)
	case *metav1.PartialObjectMetadata:
		into.ObjectMeta = metaOf(object)
	default:
		return fmt.Errorf("nobody is to ask for %T", into)
	}
	return nil
}

// List lists metadata.
func (a ahead) List(ctx context.Context, into client.ObjectList, _ ...client.ListOption) error {
	list, is := into.(*metav1.PartialObjectMetadataList)
	if !is || list.Kind != "ManagedClusterList" {
		return a.Reader.List(ctx, into)
	}
	var all clusterv1.ManagedClusterList
	if err := a.Reader.List(ctx, &all); err != nil {
		return err
	}
	for i := range all.Items {
		a.change(&clusterv1beta1.Placement{}, &all.Items[i])
		list.Items = append(list.Items, metav1.PartialObjectMetadata{ObjectMeta: metaOf(&all.Items[i])})
	}
	return nil
}

func metaOf(o client.Object) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Name: o.GetName(), UID: o.GetUID(), ResourceVersion: o.GetResourceVersion(), Generation: o.GetGeneration(),
		Labels: o.GetLabels(), Annotations: o.GetAnnotations(),
	}
}

// edit changes an object of a hub.
func edit[T client.Object](t *testing.T, hub client.Client, key client.ObjectKey, object T, change func(T)) {
	t.Helper()
	require.NoError(t, hub.Get(t.Context(), key, object))
	change(object)
	require.NoError(t, hub.Update(t.Context(), object))
}

// pagesOf returns the PlacementDecisions of a hub.
func pagesOf(t *testing.T, hub client.Client) []*clusterv1beta1.PlacementDecision {
	t.Helper()
	var list clusterv1beta1.PlacementDecisionList
	require.NoError(t, hub.List(t.Context(), &list))
	return reconcile.Pointers(list.Items)
}
