package configure

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	clocktesting "k8s.io/utils/clock/testing"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/spokelet/spokelet/hub/fleet"
	"github.com/spokelet/spokelet/internal/addonapi"
	"github.com/spokelet/spokelet/internal/addonconfig/fixture"
	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/internal/reconcile"
)

// TestAnAddOnHearsThatItsPageGoes: a person created the add-on on c2, and Placement p, which gives it a
// configuration of its own, drops c2: its page goes. The add-on is to have the defaults from then on, so it needs a
// pass.
func TestAnAddOnHearsThatItsPageGoes(t *testing.T) {
	for sentence, finalizers := range map[string][]string{
		"the page is gone at once (control)": nil, "a finalizer of another client keeps it": {"example.com/backup"},
	} {
		t.Run(sentence, func(t *testing.T) {
			scheme := runtime.NewScheme()
			require.NoError(t, clusterv1beta1.Install(scheme))
			require.NoError(t, addonv1alpha1.Install(scheme))
			cma := &addonv1alpha1.ClusterManagementAddOn{ObjectMeta: metav1.ObjectMeta{Name: "hello", UID: "cma"}}
			cma.Spec.InstallStrategy.Type = addonv1alpha1.AddonInstallStrategyPlacements
			cma.Spec.InstallStrategy.Placements = []addonv1alpha1.PlacementStrategy{{
				PlacementRef: addonv1alpha1.PlacementRef{Namespace: "ns", Name: "p"},
			}}
			addOn := &addonv1alpha1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{Namespace: "c2", Name: "hello", UID: "a"}}
			stays, goes := decision("p", "c1"), decision("p", "c2")
			stays.Name, goes.Name, goes.Finalizers = "p-decision-1", "p-decision-2", finalizers
			p := &clusterv1beta1.Placement{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "p", UID: "p", Generation: 1}}
			p.Status.Conditions = []metav1.Condition{fleet.Mark(1, []*clusterv1beta1.PlacementDecision{stays, goes})}
			hub := fake.NewClientBuilder().WithScheme(scheme).WithObjects(cma, addOn, stays, goes, p).
				WithIndex(&clusterv1beta1.PlacementDecision{}, addonapi.IndexCluster, addonapi.SelectedClusters).
				WithIndex(&addonv1alpha1.ManagedClusterAddOn{}, addonapi.IndexName, func(o client.Object) []string { return []string{o.GetName()} }).
				WithIndex(&addonv1alpha1.ClusterManagementAddOn{}, addonapi.IndexPlacement, func(client.Object) []string { return []string{"ns/p"} }).
				Build()
			clock := clocktesting.NewFakePassiveClock(fixture.Noon())
			c := &Configurer{
				AddOns: addonapi.Client{Client: hub}, Client: hub,
				Placements: &fleet.Placements{Client: hub, Own: true, Clock: clock},
				awaiting:   &awaiting{},
			}
			listed := []types.NamespacedName{{Namespace: "ns", Name: "p"}}
			key := client.ObjectKeyFromObject(addOn)
			owner, err := c.owner(t.Context(), key, listed, true)
			require.NoError(t, err)
			require.Equal(t, 0, owner.Index)
			require.Empty(t, owner.Doubts)

			q := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[ctrl.Request]())
			defer q.ShutDown()
			var older, newer clusterv1beta1.PlacementDecision
			at := client.ObjectKeyFromObject(goes)
			require.NoError(t, hub.Get(t.Context(), at, &older))
			require.NoError(t, hub.Delete(t.Context(), older.DeepCopy()))
			if finalizers == nil {
				c.addOnsOfDecision().Delete(t.Context(), event.DeleteEvent{Object: &older}, q)
			} else {
				require.NoError(t, hub.Get(t.Context(), at, &newer))
				require.NotNil(t, newer.DeletionTimestamp)
				c.addOnsOfDecision().Update(t.Context(), event.UpdateEvent{ObjectOld: &older, ObjectNew: &newer}, q)
				// Our placement has decided without it.
				older, newer = newer, *newer.DeepCopy()
				newer.Status.Decisions = nil
				require.NoError(t, hub.Update(t.Context(), &newer))
				c.addOnsOfDecision().Update(t.Context(), event.UpdateEvent{ObjectOld: &older, ObjectNew: &newer}, q)
				c.wakesAwaiting(placementOfDecision).Update(t.Context(), event.UpdateEvent{ObjectOld: &older, ObjectNew: &newer}, q)
			}
			var was clusterv1beta1.Placement
			require.NoError(t, hub.Get(t.Context(), listed[0], &was))
			is := was.DeepCopy()
			is.Status.Conditions = []metav1.Condition{fleet.Mark(1, []*clusterv1beta1.PlacementDecision{stays})}
			require.NoError(t, hub.Update(t.Context(), is))
			update := event.UpdateEvent{ObjectOld: &was, ObjectNew: is}
			require.False(t, reconcile.CreatedOrDeleted().Update(update), "so addOnsOfPlacement does not hear of it")
			c.wakesAwaiting(client.ObjectKeyFromObject).Update(t.Context(), update, q)

			clock.SetTime(fixture.Noon().Add(time.Minute))
			owner, err = c.Placements.Owner(t.Context(), listed, "c2")
			require.NoError(t, err)
			require.Equal(t, -1, owner.Index, "no placement selects c2 any more")
			require.Empty(t, owner.Doubts)
			assert.Eventually(t, func() bool { return q.Len() == 1 }, 10*time.Second, 10*time.Millisecond, "the add-on has a pass")
			assert.NotContains(t, addOn.Labels, names.LabelInstalledBy)
		})
	}
}
