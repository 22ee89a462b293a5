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
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	clusterv1beta2 "open-cluster-management.io/api/cluster/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/spokelet/spokelet/hub/install"
)

// A tool replaces the binding of a namespace (delete, create), in which a Placement is left to another scheduler. For a
// second no set is bound. It is an edit that is taken back; with a Placement that is decided, nothing comes of it.
func TestABindingThatIsReplacedTakesNothingFromAPlacementThatIsNotDecided(t *testing.T) {
	for _, sentence := range []string{"control: it is decided", "it is left to another scheduler", "it is misconfigured"} {
		t.Run(sentence, func(t *testing.T) {
			hub, r, key := boundHub(t, interceptor.Funcs{})
			clock := clocktesting.NewFakePassiveClock(noon())
			r.Clock = clock
			var p clusterv1beta1.Placement
			require.NoError(t, hub.Get(t.Context(), key, &p))
			require.NoError(t, hub.Create(t.Context(), helloBy(&p)))
			for _, name := range []string{"c1", "c2", "c3"} {
				edit(t, hub, client.ObjectKey{Name: name}, &clusterv1.ManagedCluster{}, func(c *clusterv1.ManagedCluster) {
					c.Status.Conditions = []metav1.Condition{{Type: clusterv1.ManagedClusterConditionAvailable, Status: metav1.ConditionTrue}}
				})
				_, addon := withHello(name, nil)
				require.NoError(t, hub.Create(t.Context(), addon))
			}
			installer := installerOf(hub, hub, clock, r.Passes)
			installer.Limit = install.Limit{Percent: 25, Clusters: 1}
			fleetPass := func() {
				_, err := installer.Reconcile(t.Context(), ctrl.Request{NamespacedName: types.NamespacedName{Name: "hello"}})
				require.NoError(t, err)
			}
			fleetPass()
			if freeze := frozen()[sentence]; freeze != nil {
				freeze(t, hub, key)
				passOf(t, r, key)
				fleetPass()
			}
			clock.SetTime(noon().Add(time.Hour))
			fleetPass()
			var binding clusterv1beta2.ManagedClusterSetBinding
			require.NoError(t, hub.Get(t.Context(), client.ObjectKey{Namespace: key.Namespace, Name: "mine"}, &binding))
			require.NoError(t, hub.Delete(t.Context(), &binding))
			passOf(t, r, key)
			fleetPass()
			clock.SetTime(noon().Add(time.Hour + time.Second))
			binding.ResourceVersion, binding.UID = "", "another"
			require.NoError(t, hub.Create(t.Context(), &binding))
			// The handlers of this test hear of no page, so a process that starts looks at all add-ons.
			limit := installer.Limit
			installer = installerOf(hub, hub, clock, r.Passes)
			installer.Limit = limit
			for after := 2 * time.Second; after < 10*time.Minute; after += 10 * time.Second {
				clock.SetTime(noon().Add(time.Hour + after))
				passOf(t, r, key)
				fleetPass()
			}
			var addons addonv1alpha1.ManagedClusterAddOnList
			require.NoError(t, hub.List(t.Context(), &addons))
			assert.Len(t, addons.Items, 3, "no add-on is uninstalled")
			assert.Equal(t, []string{"c1", "c2", "c3"}, union(pagesOf(t, hub)), "it keeps its decisions")
		})
	}
}
