package install

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/spokelet/spokelet/hub/fleet"
)

// Another controller schedules. A cluster is available again and still has its taint, for which that controller drops it;
// then the hub manager takes the last taint away, which Kubernetes does not note in managedFields, and the other
// controller is down for a while. No Placement was decided since nothing speaks against the cluster any more.
func TestAClusterIsWellSinceItsTaintIsGone(t *testing.T) {
	for sentence, tc := range map[string]struct{ noted, once bool }{
		"managedFields say when the taint was taken away": {noted: true},
		"they do not, as those of Kubernetes":             {},
		"they do not, and both changes come in one event": {once: true},
	} {
		t.Run(sentence, func(t *testing.T) {
			h := newPagesHub(t, false, 0, func(*clusterv1beta1.Placement) {})
			h.goesSilent()
			h.passes(time.Hour)
			written := func(c *clusterv1.ManagedCluster) {
				c.ManagedFields = []metav1.ManagedFieldsEntry{{Time: &metav1.Time{Time: h.clock.Now().Truncate(time.Second)}}}
			}
			var c clusterv1.ManagedCluster
			require.NoError(t, h.Get(t.Context(), types.NamespacedName{Name: "c1"}, &c))
			was := c.DeepCopy()
			c.Status.Conditions[0].Status = metav1.ConditionTrue
			c.Status.Conditions[0].LastTransitionTime = metav1.NewTime(h.clock.Now().Truncate(time.Second))
			require.NoError(t, h.Update(t.Context(), &c))
			written(&c)
			older := was
			if !tc.once {
				h.r.ofCluster().UpdateFunc(t.Context(), event.UpdateEvent{ObjectOld: was, ObjectNew: &c}, h.q)
				older = &c
			}
			h.passes(2 * time.Second)
			h.othersDrop()
			h.passes(2 * time.Second)
			free := c.DeepCopy()
			free.Spec.Taints = nil
			require.NoError(t, h.Update(t.Context(), free))
			free.ManagedFields = managedFieldsAfter(t, &c, free, c.ManagedFields[0].Time.Time)
			assert.Equal(t, fleet.LastWritten(&c), fleet.LastWritten(free).UTC(), "what Kubernetes notes: nothing")
			if tc.noted {
				written(free)
			}
			h.r.ofCluster().UpdateFunc(t.Context(), event.UpdateEvent{ObjectOld: older, ObjectNew: free}, h.q)
			h.passes(time.Hour)
			assert.Empty(t, h.removed, "it was dropped for a taint that is gone")
		})
	}
}
