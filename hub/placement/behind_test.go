package placement

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	clusterv1beta2 "open-cluster-management.io/api/cluster/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/spokelet/spokelet/hub/fleet"
	"github.com/spokelet/spokelet/hub/install"
)

// both are the built-in placement and the installer of one process.
type both struct {
	*testing.T

	live, cache client.WithWatch
	clock       *clocktesting.FakePassiveClock
	passes      *fleet.Passes
	scheduler   *Reconciler
	installer   *install.Reconciler
	key         types.NamespacedName
}

const manyClusters = 40

func newBoth(t *testing.T, spec func(*clusterv1beta1.PlacementSpec)) *both {
	t.Helper()
	p := placement()
	spec(&p.Spec)
	set, binding := boundIn(p.Namespace, "blue")
	objects := []client.Object{p, set, binding, helloBy(p)}
	for i := range manyClusters {
		c, addOn := withHello(fmt.Sprintf("c%04d", i), wantedLabels())
		objects = append(objects, c, addOn)
	}
	b := &both{T: t, clock: clocktesting.NewFakePassiveClock(noon()), key: client.ObjectKeyFromObject(p)}
	b.live = hubWith(t, interceptor.Funcs{}, objects...)
	b.cache = b.live
	b.starts()
	b.runs(20 * time.Second)
	require.Equal(t, manyClusters, b.left())
	return b
}

// starts makes a process.
func (b *both) starts() {
	b.passes = &fleet.Passes{}
	b.scheduler = &Reconciler{Client: b.cache, Live: b.live, Clock: b.clock, Passes: b.passes}
	b.looks()
}

// looks makes an installer that has seen nothing, in place of its handlers, which note what is dropped.
func (b *both) looks() {
	b.installer = installerOf(b.cache, b.live, b.clock, b.passes)
	b.installer.Limit = install.Limit{Percent: 25, Clusters: 10}
}

// runs makes passes of both, several in a second.
func (b *both) runs(within time.Duration) {
	b.Helper()
	selected := len(b.selected())
	for range within / (250 * time.Millisecond) {
		b.clock.SetTime(b.clock.Now().Add(250 * time.Millisecond))
		passOf(b.T, b.scheduler, b.key)
		if now := len(b.selected()); now < selected {
			b.looks()
			selected = now
		}
		_, err := b.installer.Reconcile(b.Context(), ctrl.Request{NamespacedName: types.NamespacedName{Name: "hello"}})
		require.NoError(b, err)
	}
}

func (b *both) selected() []string { b.Helper(); return union(pagesOf(b.T, b.live)) }

// left returns how many clusters have the add-on.
func (b *both) left() int {
	b.Helper()
	var all addonv1alpha1.ManagedClusterAddOnList
	require.NoError(b, b.live.List(b.Context(), &all))
	return len(all.Items)
}

// A hub manager starts with an API server that has seen nothing of one kind for a while: not a binding, or not a set,
// that were created since (GitOps had deleted and created them again). Decisions, Placement, definition and clusters are
// as the API server has them, so everything is confirmed; and the binding that is missing is an "edit", which explains
// the removal from all clusters, whatever the limit.
func TestACacheWithoutABindingUninstallsNobody(t *testing.T) {
	for sentence, hides := range map[string]func(client.ObjectList){
		"all caches are as the API server": func(client.ObjectList) {},
		"the binding is not in the cache": func(list client.ObjectList) {
			if bindings, is := list.(*clusterv1beta2.ManagedClusterSetBindingList); is {
				bindings.Items = nil
			}
		},
		"the set is not in the cache": func(list client.ObjectList) {
			if all, is := list.(*clusterv1beta2.ManagedClusterSetList); is {
				all.Items = nil
			}
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			b := newBoth(t, func(*clusterv1beta1.PlacementSpec) {})
			b.cache = interceptor.NewClient(b.live, interceptor.Funcs{
				List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
					err := c.List(ctx, list, options...)
					hides(list)
					return err
				},
			})
			b.starts()
			b.runs(10 * time.Second)
			assert.Equal(t, manyClusters, b.left(), "the API server has the binding and the set")
		})
	}
}

// The cache of clusters has what a user just changed back (the label that selects c0001), and so has the API server. The
// removal is due in this moment. The handler of the placement, which tells fleet.Passes, is called by another goroutine
// of the informer, after what is queued before it, such as 3,000 other clusters after a watch was cut.
func TestARemovalWaitsForTheHandlerOfAClusterThatTheCacheHasAlready(t *testing.T) {
	b := newBoth(t, func(s *clusterv1beta1.PlacementSpec) {
		s.Predicates = []clusterv1beta1.ClusterPredicate{{}}
		s.Predicates[0].RequiredClusterSelector.LabelSelector.MatchLabels = wantedLabels()
	})
	labelled := func(labels map[string]string) event.UpdateEvent {
		was := &clusterv1.ManagedCluster{}
		require.NoError(t, b.live.Get(t.Context(), client.ObjectKey{Name: "c0001"}, was))
		is := was.DeepCopy()
		is.Labels = labels
		require.NoError(t, b.live.Update(t.Context(), is))
		return event.UpdateEvent{ObjectOld: was, ObjectNew: is}
	}
	q := delayed{add: func(time.Duration) {}}
	b.scheduler.batched(b.scheduler.ofCluster).Update(t.Context(), labelled(nil), q)
	b.runs(2500 * time.Millisecond)
	require.NotContains(t, b.selected(), "c0001")
	require.Equal(t, manyClusters, b.left(), "decisions must be still for three seconds")

	changed := labelled(wantedLabels()) // the cache has it
	b.clock.SetTime(b.clock.Now().Add(time.Second))
	_, err := b.installer.Reconcile(t.Context(), ctrl.Request{NamespacedName: types.NamespacedName{Name: "hello"}})
	require.NoError(t, err)
	b.scheduler.batched(b.scheduler.ofCluster).Update(t.Context(), changed, q) // now the handler is called
	b.runs(5 * time.Second)
	require.Contains(t, b.selected(), "c0001")
	assert.Equal(t, manyClusters, b.left(), "the cache showed that it is selected again before its add-on was deleted")
}
