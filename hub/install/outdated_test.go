package install

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	ctrlreconcile "sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// Somebody deletes a definition. The garbage collector deletes its add-ons, which this process sees, and it does not see
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
			assert.Equal(t, len(tc.made) == 0, result.Requeue, "it looks again, later and later") //nolint:staticcheck // rate limited
			assert.Equal(t, len(tc.made) == 0, h.r.memory.went("hello", "c1"))
		})
	}
}
