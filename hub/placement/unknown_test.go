package placement

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	clusterv1beta2 "open-cluster-management.io/api/cluster/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/spokelet/spokelet/internal/decode"
	"github.com/spokelet/spokelet/internal/names"
)

// loud is the cluster whose agent says so much that the expression of costly costs too much for it.
const loud = "c0001"

// costly selects the clusters that do not say that they left.
func costly(s *clusterv1beta1.PlacementSpec) {
	s.Predicates = []clusterv1beta1.ClusterPredicate{{}}
	s.Predicates[0].RequiredClusterSelector.CelSelector.CelExpressions = []string{
		"!has(managedCluster.status.clusterClaims) || managedCluster.status.clusterClaims.all(c, " +
			"managedCluster.status.clusterClaims.all(d, c.name == d.name || c.value != 'left'))",
	}
}

// newLoud is a hub with a Placement that selects all clusters, one of which it cannot judge.
func newLoud(t *testing.T) *both {
	t.Helper()
	b := newBoth(t, costly)
	b.edits(func(c *clusterv1.ManagedCluster) {
		for i := range 200 {
			c.Status.ClusterClaims = append(c.Status.ClusterClaims,
				clusterv1.ManagedClusterClaim{Name: fmt.Sprint("claim-", i), Value: "stays"})
		}
	})
	b.runs(5 * time.Second)
	require.Contains(t, b.selected(), loud, "it keeps its place")
	return b
}

// edits changes the loud cluster, and returns what the handler of the placement asks for.
func (b *both) edits(change func(*clusterv1.ManagedCluster)) (asked touched) {
	b.Helper()
	was := &clusterv1.ManagedCluster{}
	require.NoError(b, b.live.Get(b.Context(), client.ObjectKey{Name: loud}, was))
	is := was.DeepCopy()
	change(is)
	require.NoError(b, b.live.Update(b.Context(), is))
	return b.scheduler.ofCluster(b.Context(), was, is)
}

// createsAgain deletes the Placement and its pages, and creates it again, as GitOps tools do.
func (b *both) createsAgain() {
	b.Helper()
	placement := &clusterv1beta1.Placement{}
	require.NoError(b, b.live.Get(b.Context(), b.key, placement))
	require.NoError(b, b.live.Delete(b.Context(), placement))
	for _, page := range pagesOf(b.T, b.live) {
		require.NoError(b, b.live.Delete(b.Context(), page))
	}
	b.runs(5 * time.Second)
	placement.ResourceVersion, placement.UID = "", types.UID("again")
	placement.Status = clusterv1beta1.PlacementStatus{}
	require.NoError(b, b.live.Create(b.Context(), placement))
	b.looks() // its handlers note whom the pages that went selected
}

// A cluster that cannot be judged keeps its place, until its Placement is deleted and created again: then there is no
// place to keep.
//
// Shows: invariants/selected-stays
func TestAClusterThatCannotBeJudgedKeepsItsAddOn(t *testing.T) {
	b := newLoud(t)
	b.createsAgain()
	b.runs(10 * time.Second)
	assert.Len(t, b.selected(), manyClusters-1, "there is nothing by which it has a place")
	assert.Equal(t, manyClusters, b.left(), "whether it is selected is unknown")

	b.starts()
	b.runs(10 * time.Second)
	assert.Equal(t, manyClusters, b.left(), "nor does another process know it")

	b.edits(func(c *clusterv1.ManagedCluster) {
		c.Status.ClusterClaims = []clusterv1.ManagedClusterClaim{{Name: "state", Value: "left"}, {Name: "other"}}
	})
	b.runs(10 * time.Second)
	assert.Len(t, b.selected(), manyClusters-1)
	assert.Equal(t, manyClusters-1, b.left(), "now it is known, and it is not selected")
}

// Others take all places, or there is none: whatever is found out about the cluster, it is not selected.
func TestAClusterThatCannotBeJudgedHasNoPlaceInAFullPlacement(t *testing.T) {
	for number, left := range map[int32]int{0: 0, 1: 1} {
		b := newLoud(t)
		edit(t, b.live, b.key, &clusterv1beta1.Placement{}, func(p *clusterv1beta1.Placement) {
			p.Generation++
			p.Spec.NumberOfClusters = &number
		})
		b.runs(10 * time.Second)
		require.Equal(t, clusters(0, left), b.selected())
		assert.Equal(t, left, b.left())
	}
}

func taintOf(key string) []clusterv1.Taint {
	return []clusterv1.Taint{{Key: key, Effect: clusterv1.TaintEffectNoSelect, TimeAdded: metav1.NewTime(noon())}}
}

// The cluster is away while its Placement is created again, so its taint drops it. Then it is back.
func TestAClusterThatCannotBeJudgedIsLookedAtWhenItIsBack(t *testing.T) {
	b := newLoud(t)
	assert.Contains(t, b.edits(func(c *clusterv1.ManagedCluster) {
		c.Spec.Taints = taintOf(clusterv1.ManagedClusterTaintUnreachable)
		c.Status.Conditions[0].Status = metav1.ConditionUnknown
	}), b.key, "whoever administers the hub keeps clusters out by taints")
	b.createsAgain()
	b.runs(10 * time.Second)
	require.Equal(t, manyClusters, b.left())
	assert.Contains(t, b.edits(func(c *clusterv1.ManagedCluster) {
		c.Spec.Taints = nil
		c.Status.Conditions[0].Status = metav1.ConditionTrue
		c.Status.Conditions[0].LastTransitionTime = metav1.NewTime(b.clock.Now())
	}), b.key, "a pass notes that it cannot be judged")
	b.runs(10 * time.Second)
	assert.Equal(t, manyClusters, b.left(), "whether it is selected is unknown")
}

// Taints decide about what cannot be judged: one that keeps out new clusters, and one that was tolerated for ten minutes.
func TestATaintKeepsOutAClusterThatCannotBeJudged(t *testing.T) {
	b := newLoud(t)
	b.edits(func(c *clusterv1.ManagedCluster) {
		c.Spec.Taints = taintOf("full")
		c.Spec.Taints[0].Effect = clusterv1.TaintEffectNoSelectIfNew
	})
	b.createsAgain()
	b.runs(10 * time.Second)
	assert.Equal(t, manyClusters-1, b.left(), "it is not selected, whatever its claims are")

	b = newLoud(t)
	edit(t, b.live, b.key, &clusterv1beta1.Placement{}, func(p *clusterv1beta1.Placement) {
		p.Spec.Tolerations = []clusterv1beta1.Toleration{{
			Key: "maintenance", Operator: clusterv1beta1.TolerationOpExists, TolerationSeconds: new(int64(600)),
		}}
	})
	b.edits(func(c *clusterv1.ManagedCluster) { c.Spec.Taints = taintOf("maintenance") })
	b.createsAgain()
	b.runs(10 * time.Second)
	require.Equal(t, manyClusters, b.left())
	assert.Equal(t, noon().Add(10*time.Minute), b.clock.Now().Add(passOf(t, b.scheduler, b.key).RequeueAfter))
}

// While the cluster cannot be judged, a user makes a typing error in the Placement. The installer may have a pass before
// the status says so.
func TestAPassThatTellsNothingForgetsNothing(t *testing.T) {
	b := newLoud(t)
	b.createsAgain()
	b.runs(10 * time.Second)
	edit(t, b.live, b.key, &clusterv1beta1.Placement{}, func(p *clusterv1beta1.Placement) {
		p.Generation++
		p.Spec.Predicates[0].RequiredClusterSelector.CelSelector.CelExpressions[0] += " &&"
	})
	passOf(t, b.scheduler, b.key)
	assert.True(t, b.passes.Unknown(b.key)[loud], "a typing error tells nothing about it")
}

// A cluster that cannot be decoded loses the label by which it is in a bound set.
func TestAClusterThatCannotBeDecodedLeavesItsSet(t *testing.T) {
	b := newBoth(t, func(*clusterv1beta1.PlacementSpec) {})
	edit(t, b.live, client.ObjectKey{Name: "blue"}, &clusterv1beta2.ManagedClusterSet{}, func(s *clusterv1beta2.ManagedClusterSet) {
		s.Generation++
		s.Spec.ClusterSelector.LabelSelector.MatchLabels = wantedLabels()
	})
	b.edits(func(c *clusterv1.ManagedCluster) {
		decode.Mark(c, "a number is too large")
		c.Spec, c.Status = clusterv1.ManagedClusterSpec{}, clusterv1.ManagedClusterStatus{}
	})
	b.runs(5 * time.Second)
	require.Contains(t, b.selected(), loud)
	assert.Empty(t, b.edits(func(c *clusterv1.ManagedCluster) { c.Annotations = map[string]string{"of": "an agent"} }))
	version := 0
	b.scheduler.Live = interceptor.NewClient(b.live, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			if _, whole := o.(*clusterv1.ManagedCluster); whole && key.Name == loud {
				return errors.New("json: cannot unmarshal number")
			}
			err := c.Get(ctx, key, o, opts...)
			version++
			o.SetResourceVersion(fmt.Sprint("its-agent-writes-", version))
			return err
		},
	})
	assert.Contains(t, b.edits(func(c *clusterv1.ManagedCluster) { c.Labels = nil }), b.key)
	b.runs(time.Second)
	assert.NotContains(t, b.selected(), loud)
	assert.Empty(t, b.edits(func(c *clusterv1.ManagedCluster) { c.Labels = map[string]string{"of": "nobody"} }),
		"it is no part of the Placement any more")
}

// A Placement of an earlier version, which asked for no bindings, has one cluster that is in no bound set. It cannot be
// decoded for a while.
func TestAClusterWithoutABindingThatCannotBeDecodedStays(t *testing.T) {
	b := newBoth(t, func(*clusterv1beta1.PlacementSpec) {})
	for _, page := range pagesOf(t, b.live) { // as that version wrote them
		edit(t, b.live, client.ObjectKeyFromObject(page), &clusterv1beta1.PlacementDecision{}, func(d *clusterv1beta1.PlacementDecision) {
			delete(d.Annotations, names.AnnotationSetBindings)
			metav1.SetMetaDataAnnotation(&d.ObjectMeta, names.AnnotationStickyPages, "true")
		})
	}
	b.edits(func(c *clusterv1.ManagedCluster) {
		c.Labels = nil
		decode.Mark(c, "a number is too large")
		c.Spec, c.Status = clusterv1.ManagedClusterSpec{}, clusterv1.ManagedClusterStatus{}
	})
	edit(t, b.live, client.ObjectKey{Name: "blue"}, &clusterv1beta2.ManagedClusterSet{}, func(s *clusterv1beta2.ManagedClusterSet) {
		s.Generation++
		s.Spec.ClusterSelector.LabelSelector.MatchLabels = wantedLabels()
	})
	b.runs(2 * time.Second)
	require.Contains(t, b.selected(), loud)
	b.edits(func(c *clusterv1.ManagedCluster) {
		fresh, _ := withHello(loud, nil)
		c.SelfLink, c.Spec, c.Status = "", fresh.Spec, fresh.Status
	})
	b.runs(10 * time.Second)
	assert.Contains(t, b.selected(), loud)
}

// A hub manager starts with an API server whose list of clusters is behind: most of those that the pages select are not
// in it, more than a pass reads one by one.
func TestClustersThatOnlyTheCacheLacksStaySelected(t *testing.T) {
	const all, lacks = maxOther + 12, maxOther + 10
	hub, r, key := hubOf(t, all, interceptor.Funcs{})
	edit(t, hub, key, &clusterv1beta1.Placement{}, func(p *clusterv1beta1.Placement) {
		p.Spec.DecisionStrategy = clusterv1beta1.DecisionStrategy{}
	})
	passOf(t, r, key)
	passOf(t, r, key)
	require.Len(t, union(pagesOf(t, hub)), all)
	r.Client = interceptor.NewClient(hub, interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			err := c.List(ctx, list, options...)
			if all, is := list.(*clusterv1.ManagedClusterList); is {
				all.Items = all.Items[lacks:]
			}
			return err
		},
	})
	for range 3 {
		passOf(t, r, key)
	}
	assert.Equal(t, clusters(0, all), union(pagesOf(t, hub)), "the API server has them all")
}
