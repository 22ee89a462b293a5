package install

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/event"
)

// comesBack makes c1 available again.
func (h *pagesHub) comesBack() {
	h.Helper()
	var c clusterv1.ManagedCluster
	require.NoError(h, h.Get(h.Context(), types.NamespacedName{Name: "c1"}, &c))
	was := c.DeepCopy()
	c.Spec.Taints = nil
	c.Status.Conditions[0].Status = metav1.ConditionTrue
	c.Status.Conditions[0].LastTransitionTime = metav1.NewTime(h.clock.Now().Truncate(time.Second))
	require.NoError(h, h.Update(h.Context(), &c))
	h.r.ofCluster().UpdateFunc(h.Context(), event.UpdateEvent{ObjectOld: was, ObjectNew: &c}, h.q)
}

// isEdited is a person who edits the Placement.
func (h *pagesHub) isEdited() {
	h.Helper()
	var p clusterv1beta1.Placement
	require.NoError(h, h.Get(h.Context(), types.NamespacedName{Namespace: "ns", Name: "p"}, &p))
	earlier := p.DeepCopy()
	p.Generation++
	p.CreationTimestamp = metav1.NewTime(h.clock.Now().Truncate(time.Second)) // the fake keeps no managedFields
	require.NoError(h, h.Update(h.Context(), &p))
	h.r.ofPlacement().UpdateFunc(h.Context(), event.UpdateEvent{ObjectOld: earlier, ObjectNew: &p}, h.q)
}

// Another controller schedules, dropped c1 while it was away, and decides nothing since it is back. The Event says what
// helps: "delete their ManagedClusterAddOns or edit a placement".
func TestAPersonEditsAPlacementAsTheEventSays(t *testing.T) {
	for sentence, tc := range map[string]struct {
		limit   Limit
		earlier bool
	}{
		"with the limit of every hub manager":                         {limit: Limit{Percent: 25, Clusters: 10}},
		"without a limit":                                             {},
		"without a limit, not by what was edited before it came back": {earlier: true},
	} {
		t.Run(sentence, func(t *testing.T) {
			h := newPagesHub(t, false, 0, func(*clusterv1beta1.Placement) {})
			recorder := events.NewFakeRecorder(100)
			h.r.Limit, h.r.Recorder = tc.limit, recorder
			h.q.Add(ofFleet("hello"))
			h.passes(time.Minute)
			h.goesSilent()
			h.passes(time.Minute)
			h.othersDrop()
			h.passes(time.Hour)
			if tc.earlier {
				h.isEdited()
				h.passes(time.Hour)
			}
			h.comesBack()
			h.passes(time.Hour)
			require.Empty(t, h.removed, "it was dropped because it was away")
			var last string
			for len(recorder.Events) > 0 {
				last = <-recorder.Events
			}
			require.Contains(t, last, "or edit a placement, such as ns/p")
			want := []string(nil)
			if !tc.earlier {
				h.isEdited()
				want = []string{"c1"}
			}
			h.passes(24 * time.Hour)
			assert.Equal(t, want, h.removed)
		})
	}
}
