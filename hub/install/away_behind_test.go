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
)

// Another controller schedules. It dropped c1 while that was away, and is down since. c1 is back, as the API server
// says. The cache of clusters is behind: it has seen neither. (TestAClusterThatWasAwayWhileNobodyWatched has a cache
// that has seen the return.)
//
// Shows: hub/removal-confirmed
func TestAClusterThatWasAwayAndIsBackWhileTheCacheIsBehind(t *testing.T) {
	h := newPagesHub(t, false, 0, func(*clusterv1beta1.Placement) {})
	was := droppedByOthers(t, h)
	h.passes(time.Minute)
	require.Empty(t, h.removed, "five minutes must pass")

	live := liveOf(t, h)
	is := was.DeepCopy()
	is.Status.Conditions[0].LastTransitionTime = metav1.NewTime(h.clock.Now())
	is.ManagedFields = []metav1.ManagedFieldsEntry{{Time: &metav1.Time{Time: h.clock.Now()}}}
	require.NoError(t, live.Update(t.Context(), is))
	h.r.Live = live
	h.passes(10 * time.Minute)
	assert.Empty(t, h.removed, "no placement was decided since it is available again")
}

// Another controller schedules, and dropped c1. Its agent writes an address or the lease of its cluster all the time, so
// that the API server always has a later copy than the cache.
//
// Shows: hub/taken-whatever-the-agent-writes
func TestAnAgentKeepsNoAddOnByItsAddressWhereOthersSchedule(t *testing.T) {
	h := newPagesHub(t, false, 0, func(*clusterv1beta1.Placement) {})
	was := droppedByOthers(t, h)
	live := liveOf(t, h)
	was.Spec.ManagedClusterClientConfigs = []clusterv1.ClientConfig{{URL: "https://another.example.com"}}
	was.Spec.LeaseDurationSeconds = 7
	require.NoError(t, live.Update(t.Context(), was))
	h.r.Live = live
	h.passes(10 * time.Minute)
	assert.Equal(t, []string{"c1"}, h.removed)
}

// droppedByOthers has another controller drop c1, and returns its cluster.
func droppedByOthers(t *testing.T, h *pagesHub) *clusterv1.ManagedCluster {
	t.Helper()
	was := &clusterv1.ManagedCluster{}
	require.NoError(t, h.Get(t.Context(), types.NamespacedName{Name: "c1"}, was))
	h.r.ofCluster().CreateFunc(t.Context(), event.CreateEvent{Object: was.DeepCopy()}, h.q)
	h.passes(time.Second)
	older := h.page("p-decision-1")
	newer := older.DeepCopy()
	newer.Status.Decisions = nil
	newer.ManagedFields = []metav1.ManagedFieldsEntry{{Time: &metav1.Time{Time: h.clock.Now()}}}
	require.NoError(t, h.Update(t.Context(), newer))
	var p clusterv1beta1.Placement
	require.NoError(t, h.Get(t.Context(), types.NamespacedName{Namespace: "ns", Name: "p"}, &p))
	p.Status.NumberOfSelectedClusters = 1
	require.NoError(t, h.Update(t.Context(), &p))
	h.r.ofDecision().UpdateFunc(t.Context(), event.UpdateEvent{ObjectOld: older, ObjectNew: newer}, h.q)
	return was
}
