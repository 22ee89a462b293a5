package install

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	ctrlreconcile "sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/spokelet/spokelet/internal/names"
)

// A user deletes a definition. The garbage collector deletes its add-ons, which this process sees, and it does not see
// yet that the definition went: it made the add-ons again and again, and the garbage collector deleted them.
// Shows: hub/install-owner-there
func TestAnAddOnThatWentIsInstalledAgainOnlyIfItsDefinitionIsThere(t *testing.T) {
	for sentence, tc := range map[string]struct {
		uid  types.UID
		made []string
	}{
		"the definition is there, so a person deleted the add-on": {uid: "cma", made: []string{"c1"}},
		"it is gone": {},
		"there is another one, and the cache has not seen it yet": {uid: "another"},
	} {
		t.Run(sentence, func(t *testing.T) {
			h := newPagesHub(t, true, 0, func(*clusterv1beta1.Placement) {})
			live := fake.NewClientBuilder().WithScheme(h.Scheme())
			if tc.uid != "" {
				live = live.WithObjects(&addonv1alpha1.ClusterManagementAddOn{
					ObjectMeta: metav1.ObjectMeta{Name: "hello", UID: tc.uid},
				})
			}
			h.r.Live = live.Build()
			key := types.NamespacedName{Namespace: "c1", Name: "hello"}
			require.NoError(t, h.Delete(t.Context(), &addonv1alpha1.ManagedClusterAddOn{
				ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name},
			}))
			result, err := h.r.Reconcile(t.Context(), ctrlreconcile.Request{NamespacedName: key})
			require.NoError(t, err)
			assert.Equal(t, tc.made, h.made)
			assert.Equal(t, len(tc.made) == 0, result.Requeue, "it looks again, later and later")
			assert.Equal(t, len(tc.made) == 0, h.r.memory.went("hello", "c1"))
		})
	}
}

// A hub manager starts with an API server that has seen nothing for a while: the page that it lists was written while the
// cluster was not available, and drops it. The cluster is available and selected again since. It lost its add-on.
// Shows: hub/removal-confirmed
func TestNoAddOnIsRemovedByWhatOnlyTheCacheSays(t *testing.T) {
	for sentence, change := range map[string]func(t *testing.T, live client.Client){
		"another page": func(t *testing.T, live client.Client) {
			t.Helper()
			var page clusterv1beta1.PlacementDecision
			require.NoError(t, live.Get(t.Context(), types.NamespacedName{Namespace: "ns", Name: "p-decision-1"}, &page))
			page.Status.Decisions = []clusterv1beta1.ClusterDecision{{ClusterName: "c1"}}
			require.NoError(t, live.Update(t.Context(), &page))
		},
		"another page besides": func(t *testing.T, live client.Client) {
			t.Helper()
			page := pageOf("p", 3, "c1")
			page.Namespace, page.Labels = "ns", map[string]string{names.LabelPlacement: "p"}
			require.NoError(t, live.Create(t.Context(), page))
		},
		"another Placement": func(t *testing.T, live client.Client) {
			t.Helper()
			var placement clusterv1beta1.Placement
			require.NoError(t, live.Get(t.Context(), types.NamespacedName{Namespace: "ns", Name: "p"}, &placement))
			placement.Spec.NumberOfClusters = new(int32(7))
			require.NoError(t, live.Update(t.Context(), &placement))
		},
		"a cluster that is not available": func(t *testing.T, live client.Client) {
			t.Helper()
			var cluster clusterv1.ManagedCluster
			require.NoError(t, live.Get(t.Context(), types.NamespacedName{Name: "c1"}, &cluster))
			cluster.Status.Conditions[0].Status = metav1.ConditionUnknown
			require.NoError(t, live.Update(t.Context(), &cluster))
		},
	} {
		t.Run("the API server has "+sentence, func(t *testing.T) {
			h := newPagesHub(t, true, 0, func(*clusterv1beta1.Placement) {})
			h.dropped("c1")
			live := liveOf(t, h)
			change(t, live)
			h.r.Live = live
			h.passes(time.Hour)
			assert.Empty(t, h.removed)
			h.r.Live = h
			h.passes(time.Minute)
			assert.Equal(t, []string{"c1"}, h.removed, "it is as the cache says")
		})
	}
}
