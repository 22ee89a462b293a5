package placement

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	clusterv1beta2 "open-cluster-management.io/api/cluster/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/spokelet/spokelet/internal/decode"
)

// An administrator takes set blue from a namespace, and gives it set green. In this moment more than fifty clusters of blue
// differ from the cache (their agents write their addresses; or a cache that is behind). New clusters need a new page.
func TestASetThatIsUnboundKeepsNoCluster(t *testing.T) {
	for sentence, green := range map[string]int{"no page is made (control)": 40, "a page is made": 60} {
		t.Run(sentence, func(t *testing.T) {
			const blue = 100
			p := placement()
			labelledSet := func(name string) (*clusterv1beta2.ManagedClusterSet, *clusterv1beta2.ManagedClusterSetBinding) {
				set, binding := boundIn(p.Namespace, name)
				set.Spec.ClusterSelector.LabelSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"set": name}}
				return set, binding
			}
			blueSet, blueBinding := labelledSet("blue")
			greenSet, greenBinding := labelledSet("green")
			objects := []client.Object{p, blueSet, blueBinding, greenSet}
			for i := range blue + green {
				c := &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("c%04d", i), Labels: map[string]string{"set": "blue"}}}
				if i >= blue {
					c.Labels["set"] = "green"
				}
				c.Spec.HubAcceptsClient = true
				objects = append(objects, c)
			}
			hub := hubWith(t, interceptor.Funcs{}, objects...)
			r := &Reconciler{Client: hub, Live: hub, Clock: clocktesting.NewFakePassiveClock(noon())}
			key := client.ObjectKeyFromObject(p)
			passOf(t, r, key)
			passOf(t, r, key)
			require.Equal(t, clusters(0, blue), union(pagesOf(t, hub)))

			require.NoError(t, hub.Delete(t.Context(), blueBinding))
			require.NoError(t, hub.Create(t.Context(), greenBinding))
			writes := func(o client.Object) { o.SetGeneration(o.GetGeneration() + 1) } // its agent writes its addresses
			r.Live = interceptor.NewClient(hub, interceptor.Funcs{
				Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
					err := c.Get(ctx, key, o, opts...)
					if _, is := o.(*clusterv1.ManagedCluster); is {
						writes(o)
					}
					return err
				},
				List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
					err := c.List(ctx, list, opts...)
					if all, is := list.(*metav1.PartialObjectMetadataList); is && all.Kind == "ManagedClusterList" {
						for i := range all.Items {
							writes(&all.Items[i])
						}
					}
					return err
				},
			})
			passOf(t, r, key)
			t.Logf("after the pass: %d selected", len(union(pagesOf(t, hub))))
			var now clusterv1beta1.Placement
			require.NoError(t, hub.Get(t.Context(), key, &now))
			c := meta.FindStatusCondition(now.Status.Conditions, clusterv1beta1.PlacementConditionSatisfied)
			assert.NotContains(t, c.Message, "an earlier version", "there was none")

			r.Live = hub // the cache has all, and the agents are quiet
			for range 5 {
				passOf(t, r, key)
			}
			assert.Equal(t, clusters(blue, blue+green), union(pagesOf(t, hub)), "set blue is not bound any more")
			require.NoError(t, hub.Delete(t.Context(), greenBinding))
			for range 5 {
				passOf(t, r, key)
			}
			assert.Empty(t, union(pagesOf(t, hub)), "no set is bound any more")
		})
	}
}

// The Placement asks for 40 clusters and was created again: 39 are selected, and of one it is unknown. A cluster joins,
// which would take the last place, but its page is refused, and it is gone again. There was a place all the time.
func TestAPlaceThatIsNotWrittenTakesNoAddOn(t *testing.T) {
	b := newLoud(t)
	edit(t, b.live, b.key, &clusterv1beta1.Placement{}, func(p *clusterv1beta1.Placement) {
		p.Generation++
		p.Spec.NumberOfClusters = new(int32(manyClusters))
	})
	b.runs(5 * time.Second)
	b.createsAgain()
	b.runs(10 * time.Second)
	q := delayed{add: func(time.Duration) {}}
	tells := b.scheduler.batched(b.scheduler.ofCluster)
	var all clusterv1.ManagedClusterList
	require.NoError(t, b.live.List(t.Context(), &all))
	for i := range all.Items {
		tells.Create(t.Context(), event.CreateEvent{Object: &all.Items[i]}, q)
	}
	b.runs(10 * time.Second)
	require.Len(t, b.selected(), manyClusters-1)
	require.True(t, b.passes.Unknown(b.key)[loud])
	require.Equal(t, manyClusters, b.left())

	fresh, _ := withHello("c9999", wantedLabels())
	require.NoError(t, b.live.Create(t.Context(), fresh))
	refuse := func(o client.Object) error {
		if _, is := o.(*clusterv1beta1.PlacementDecision); is {
			return apierrors.NewForbidden(schema.GroupResource{Resource: "placementdecisions"}, o.GetName(), fmt.Errorf("a policy"))
		}
		return nil
	}
	b.scheduler.Client = interceptor.NewClient(b.live, interceptor.Funcs{
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, o client.Object, patch client.Patch, opts ...client.SubResourcePatchOption) error {
			if err := refuse(o); err != nil {
				return err
			}
			return c.SubResource(sub).Patch(ctx, o, patch, opts...)
		},
	})
	tells.Create(t.Context(), event.CreateEvent{Object: fresh}, q)
	_, err := b.scheduler.Reconcile(t.Context(), ctrl.Request{NamespacedName: b.key})
	t.Logf("the pass: %v", err)
	// The status says DecisionsRefused, and that event starts a pass of the installer.
	_, err = b.installer.Reconcile(t.Context(), ctrl.Request{NamespacedName: types.NamespacedName{Name: "hello"}})
	t.Logf("the installer: %v", err)
	require.Len(t, b.selected(), manyClusters-1, "the last place is not given to anybody")
	assert.Equal(t, manyClusters, b.left(), "no written decision says that others have all places")

	b.scheduler.Client = b.live
	require.NoError(t, b.live.Delete(t.Context(), fresh))
	b.runs(time.Second)
	require.True(t, b.passes.Unknown(b.key)[loud], "it is unknown as before")
}

// The hub does not accept c0001 any more while it cannot be decoded. Then it can be decoded again.
func TestAClusterThatIsNotAcceptedLosesItsPlaceWhenItCanBeDecoded(t *testing.T) {
	b := newBoth(t, func(*clusterv1beta1.PlacementSpec) {})
	b.edits(func(c *clusterv1.ManagedCluster) {
		decode.Mark(c, "a number is too large")
		c.Spec, c.Status = clusterv1.ManagedClusterSpec{}, clusterv1.ManagedClusterStatus{}
	})
	b.runs(5 * time.Second)
	require.Contains(t, b.selected(), loud)
	asked := b.edits(func(c *clusterv1.ManagedCluster) {
		fresh, _ := withHello(loud, nil)
		c.SelfLink, c.Spec, c.Status = "", fresh.Spec, fresh.Status
		c.Spec.HubAcceptsClient = false
	})
	assert.Contains(t, asked, b.key, "it is selected, and should not be")
}
