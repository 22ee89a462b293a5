package placement

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/spokelet/spokelet/hub/fleet"
)

// A user edits a ManagedClusterSet, which drops c1, and takes that back before the add-on goes. The watch of sets has
// told the placement, which selects c1 again 200 ms later.
func TestASetThatIsEditedBackBeforeTheAddOnGoes(t *testing.T) {
	for _, after := range []time.Duration{2 * time.Second, 2700 * time.Millisecond, 2950 * time.Millisecond} {
		t.Run(after.String()+" after c1 was dropped", func(t *testing.T) {
			p := placement()
			key := client.ObjectKeyFromObject(p)
			set, binding := boundIn(p.Namespace, "blue")
			objects := []client.Object{p, set, binding, helloBy(p)}
			for name, env := range map[string]string{"c0": "prod", "c1": "test"} {
				c, addOn := withHello(name, map[string]string{"env": env})
				objects = append(objects, c, addOn)
			}
			hub := hubWith(t, interceptor.Funcs{}, objects...)
			clock := clocktesting.NewFakePassiveClock(noon())
			passes := &fleet.Passes{}
			scheduler := &Reconciler{Client: hub, Live: hub, Clock: clock, Passes: passes}
			installer := installerOf(hub, hub, clock, passes)
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
							installer = installerOf(hub, hub, clock, passes) // in place of its handler, which notes what is dropped
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
