package placement

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	clusterv1beta2 "open-cluster-management.io/api/cluster/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/spokelet/spokelet/hub/fleet"
	"github.com/spokelet/spokelet/hub/install"
	"github.com/spokelet/spokelet/internal/addonapi"
	"github.com/spokelet/spokelet/internal/names"
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
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		clusterv1.Install, clusterv1beta1.Install, clusterv1beta2.Install, addonv1alpha1.Install,
	} {
		require.NoError(t, add(scheme))
	}
	p := placement()
	spec(&p.Spec)
	set := &clusterv1beta2.ManagedClusterSet{ObjectMeta: metav1.ObjectMeta{Name: "blue", Generation: 1}}
	set.Spec.ClusterSelector = clusterv1beta2.ManagedClusterSelector{
		SelectorType: clusterv1beta2.LabelSelector, LabelSelector: &metav1.LabelSelector{},
	}
	binding := &clusterv1beta2.ManagedClusterSetBinding{ObjectMeta: metav1.ObjectMeta{Namespace: p.Namespace, Name: "blue", Generation: 1}}
	binding.Spec.ClusterSet = "blue"
	binding.Status.Conditions = []metav1.Condition{{Type: clusterv1beta2.ClusterSetBindingBoundType, Status: metav1.ConditionTrue}}
	cma := &addonv1alpha1.ClusterManagementAddOn{ObjectMeta: metav1.ObjectMeta{Name: "hello", UID: "cma"}}
	cma.Spec.InstallStrategy.Type = addonv1alpha1.AddonInstallStrategyPlacements
	cma.Spec.InstallStrategy.Placements = []addonv1alpha1.PlacementStrategy{{
		PlacementRef: addonv1alpha1.PlacementRef{Namespace: p.Namespace, Name: p.Name},
	}}
	objects := []client.Object{p, set, binding, cma}
	for i := range manyClusters {
		name := fmt.Sprintf("c%04d", i)
		c := &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: wantedLabels()}}
		c.Spec.HubAcceptsClient = true
		c.Status.Conditions = []metav1.Condition{{Type: clusterv1.ManagedClusterConditionAvailable, Status: metav1.ConditionTrue}}
		objects = append(objects, c, &addonv1alpha1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{
			Namespace: name, Name: "hello", Labels: map[string]string{names.LabelInstalledBy: names.InstalledByPlacement},
			CreationTimestamp: metav1.NewTime(noon().Add(-time.Hour)),
		}})
	}
	b := &both{T: t, clock: clocktesting.NewFakePassiveClock(noon()), key: client.ObjectKeyFromObject(p)}
	b.live = fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).
		WithStatusSubresource(&clusterv1beta1.Placement{}, &clusterv1beta1.PlacementDecision{}).
		WithIndex(&addonv1alpha1.ManagedClusterAddOn{}, addonapi.IndexName, func(o client.Object) []string { return []string{o.GetName()} }).
		Build()
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
	b.installer = &install.Reconciler{
		Client: b.cache, Live: b.live, AddOns: addonapi.Client{Client: b.cache}, Clock: b.clock, Workers: 1,
		Placements: &fleet.Placements{Client: b.cache, Clock: b.clock, Own: true, Passes: b.passes},
		Limit:      install.Limit{Percent: 25, Clusters: 10},
	}
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
