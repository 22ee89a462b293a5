package placement

import (
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
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/spokelet/spokelet/hub/fleet"
	"github.com/spokelet/spokelet/hub/install"
	"github.com/spokelet/spokelet/internal/addonapi"
	"github.com/spokelet/spokelet/internal/names"
)

// Somebody edits a ManagedClusterSet, which drops c1, and takes that back before the add-on goes. The watch of sets has
// told the placement, which selects c1 again 200 ms later.
func TestASetThatIsEditedBackBeforeTheAddOnGoes(t *testing.T) {
	for _, after := range []time.Duration{2 * time.Second, 2700 * time.Millisecond, 2950 * time.Millisecond} {
		t.Run(after.String()+" after c1 was dropped", func(t *testing.T) {
			scheme := runtime.NewScheme()
			for _, add := range []func(*runtime.Scheme) error{
				clusterv1.Install, clusterv1beta1.Install, clusterv1beta2.Install, addonv1alpha1.Install,
			} {
				require.NoError(t, add(scheme))
			}
			p := placement()
			key := client.ObjectKeyFromObject(p)
			set := &clusterv1beta2.ManagedClusterSet{ObjectMeta: metav1.ObjectMeta{Name: "blue", Generation: 1}}
			set.Spec.ClusterSelector = clusterv1beta2.ManagedClusterSelector{
				SelectorType: clusterv1beta2.LabelSelector, LabelSelector: &metav1.LabelSelector{},
			}
			binding := &clusterv1beta2.ManagedClusterSetBinding{ObjectMeta: metav1.ObjectMeta{Namespace: p.Namespace, Name: "blue"}}
			binding.Spec.ClusterSet = "blue"
			binding.Status.Conditions = []metav1.Condition{{Type: clusterv1beta2.ClusterSetBindingBoundType, Status: metav1.ConditionTrue}}
			cma := &addonv1alpha1.ClusterManagementAddOn{ObjectMeta: metav1.ObjectMeta{Name: "hello", UID: "cma"}}
			cma.Spec.InstallStrategy.Type = addonv1alpha1.AddonInstallStrategyPlacements
			cma.Spec.InstallStrategy.Placements = []addonv1alpha1.PlacementStrategy{{
				PlacementRef: addonv1alpha1.PlacementRef{Namespace: key.Namespace, Name: key.Name},
			}}
			objects := []client.Object{p, set, binding, cma}
			for name, env := range map[string]string{"c0": "prod", "c1": "test"} {
				c := &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"env": env}}}
				c.Spec.HubAcceptsClient = true
				// It has always been available: the fake API server does not say when a page was written.
				c.Status.Conditions = []metav1.Condition{{
					Type: clusterv1.ManagedClusterConditionAvailable, Status: metav1.ConditionTrue,
				}}
				objects = append(objects, c, &addonv1alpha1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{
					Namespace: name, Name: "hello", Labels: map[string]string{names.LabelInstalledBy: names.InstalledByPlacement},
					CreationTimestamp: metav1.NewTime(noon().Add(-time.Hour)),
				}})
			}
			hub := fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).
				WithStatusSubresource(&clusterv1beta1.Placement{}, &clusterv1beta1.PlacementDecision{}).
				WithIndex(&addonv1alpha1.ManagedClusterAddOn{}, addonapi.IndexName, func(o client.Object) []string { return []string{o.GetName()} }).
				Build()
			clock := clocktesting.NewFakePassiveClock(noon())
			passes := &fleet.Passes{}
			scheduler := &Reconciler{Client: hub, Live: hub, Clock: clock, Passes: passes}
			newInstaller := func() *install.Reconciler {
				return &install.Reconciler{
					Client: hub, Live: hub, AddOns: addonapi.Client{Client: hub}, Clock: clock, Workers: 1,
					Placements: &fleet.Placements{Client: hub, Clock: clock, Own: true, Passes: passes},
				}
			}
			installer := newInstaller()
			now, decide, remove := noon(), noon(), noon()
			q := delayed{add: func(after time.Duration) {
				if at := now.Add(after); decide.IsZero() || at.Before(decide) {
					decide = at
				}
			}}
			selects := func(labels map[string]string) {
				older := set.DeepCopy()
				set.Generation++
				set.Spec.ClusterSelector.LabelSelector = &metav1.LabelSelector{MatchLabels: labels}
				require.NoError(t, hub.Update(t.Context(), set))
				scheduler.batched(scheduler.ofSet).Update(t.Context(), event.UpdateEvent{ObjectOld: older, ObjectNew: set.DeepCopy()}, q)
				remove = now // the removal hears of it, too
			}
			has := func(kind client.Object, in string) bool {
				return hub.Get(t.Context(), types.NamespacedName{Namespace: in, Name: "hello"}, kind) == nil
			}
			selected := func() bool {
				var page clusterv1beta1.PlacementDecision
				require.NoError(t, hub.Get(t.Context(), types.NamespacedName{Namespace: "ns", Name: "p-decision-1"}, &page))
				return len(page.Status.Decisions) == 2
			}
			var version string
			run := func(within time.Duration) (droppedAt time.Time) {
				for end := now.Add(within); now.Before(end); now = now.Add(5 * time.Millisecond) {
					clock.SetTime(now)
					if !decide.IsZero() && !now.Before(decide) {
						decide = time.Time{}
						if result := passOf(t, scheduler, key); result.RequeueAfter > 0 {
							q.add(result.RequeueAfter)
						}
						var page clusterv1beta1.PlacementDecision
						require.NoError(t, hub.Get(t.Context(), types.NamespacedName{Namespace: "ns", Name: "p-decision-1"}, &page))
						if page.ResourceVersion != version { // its event
							version = page.ResourceVersion
							passes.Ask(key, fleet.EachCluster, now)
							q.add(batchPeriod)
							remove = now
						}
						if droppedAt.IsZero() && !selected() {
							droppedAt = now
							installer = newInstaller() // in place of its handler, which notes what is dropped
						}
					}
					if !remove.IsZero() && !now.Before(remove) {
						remove = time.Time{}
						result, err := installer.Reconcile(t.Context(), ctrl.Request{NamespacedName: types.NamespacedName{Name: "hello"}})
						require.NoError(t, err)
						switch {
						case result.RequeueAfter > 0:
							remove = now.Add(result.RequeueAfter)
						case result.Requeue:
							remove = now.Add(5 * time.Millisecond)
						}
					}
				}
				return droppedAt
			}
			run(10 * time.Second)
			require.True(t, selected())
			selects(map[string]string{"env": "prod"})
			droppedAt := run(time.Second)
			require.False(t, droppedAt.IsZero())
			run(droppedAt.Add(after).Sub(now))
			require.True(t, has(&addonv1alpha1.ManagedClusterAddOn{}, "c1"), "decisions must be still for three seconds")
			selects(nil)
			run(10 * time.Second)
			require.True(t, selected())
			assert.True(t, has(&addonv1alpha1.ManagedClusterAddOn{}, "c1"), "it is selected, as before")
		})
	}
}
