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

	"github.com/spokelet/spokelet/hub/fleet"
)

// goesSilent makes c1 a cluster whose agent is silent.
func (h *pagesHub) goesSilent() {
	h.Helper()
	var c clusterv1.ManagedCluster
	require.NoError(h, h.Get(h.Context(), types.NamespacedName{Name: "c1"}, &c))
	was := c.DeepCopy()
	c.Status.Conditions[0].Status = metav1.ConditionUnknown
	c.Status.Conditions[0].LastTransitionTime = metav1.NewTime(h.clock.Now().Truncate(time.Second))
	c.Spec.Taints = []clusterv1.Taint{{
		Key: clusterv1.ManagedClusterTaintUnreachable, Effect: clusterv1.TaintEffectNoSelect,
		TimeAdded: metav1.NewTime(h.clock.Now().Truncate(time.Second)),
	}}
	require.NoError(h, h.Update(h.Context(), &c))
	h.r.ofCluster().UpdateFunc(h.Context(), event.UpdateEvent{ObjectOld: was, ObjectNew: &c}, h.q)
}

// othersDrop is another scheduler that drops c1.
func (h *pagesHub) othersDrop() {
	h.Helper()
	older := h.page("p-decision-1")
	newer := older.DeepCopy()
	newer.Status.Decisions = nil
	newer.CreationTimestamp = metav1.NewTime(h.clock.Now().Truncate(time.Second)) // the fake keeps no managedFields
	require.NoError(h, h.Update(h.Context(), newer))
	var p clusterv1beta1.Placement
	require.NoError(h, h.Get(h.Context(), types.NamespacedName{Namespace: "ns", Name: "p"}, &p))
	p.Status.NumberOfSelectedClusters = 1
	require.NoError(h, h.Update(h.Context(), &p))
	h.r.ofDecision().UpdateFunc(h.Context(), event.UpdateEvent{ObjectOld: older, ObjectNew: newer}, h.q)
}

// isToBeTolerated has another scheduler, which is down since it dropped c1, whose agent is silent, and a person who lets
// the Placement tolerate that, so that the cluster keeps its add-on.
func (h *pagesHub) isToBeTolerated() {
	h.Helper()
	h.goesSilent()
	h.othersDrop()
	h.passes(time.Hour)
	require.Empty(h, h.removed, "it is not available")
	var p clusterv1beta1.Placement
	require.NoError(h, h.Get(h.Context(), types.NamespacedName{Namespace: "ns", Name: "p"}, &p))
	earlier := p.DeepCopy()
	p.Generation++
	p.CreationTimestamp = metav1.NewTime(h.clock.Now().Truncate(time.Second)) // the fake keeps no managedFields
	p.Spec.Tolerations = []clusterv1beta1.Toleration{{Operator: clusterv1beta1.TolerationOpExists}}
	require.NoError(h, h.Update(h.Context(), &p))
	h.r.ofPlacement().UpdateFunc(h.Context(), event.UpdateEvent{ObjectOld: earlier, ObjectNew: &p}, h.q)
}

// As TestATolerationDoesNotRemoveWhatItIsToKeep, with the limit that a hub manager has unless a person sets another.
func TestATolerationDoesNotRemoveWhatItIsToKeepWithTheLimitOfEveryHubManager(t *testing.T) {
	h := newPagesHub(t, false, 0, func(*clusterv1beta1.Placement) {})
	h.r.Limit = Limit{Percent: 25, Clusters: 10}
	itsAnnotation := func() { h.q.Add(ofFleet("hello")) } // of the annotation that a pass writes
	itsAnnotation()
	h.passes(time.Minute)
	h.isToBeTolerated()
	h.passes(14 * time.Minute)
	require.Empty(t, h.removed, "nobody has decided with the toleration yet")
	h.passes(2 * time.Minute)
	itsAnnotation()
	h.passes(time.Hour)
	assert.Empty(t, h.removed, "nobody has decided with the toleration yet, a quarter of an hour later either")
}

// A hub manager with --removal-limit-percent=0 records nothing. A silent cluster that its Placement tolerates loses a
// label and is dropped; the hub manager restarts. It kept the add-on for good, and said that the Placement does not
// tolerate the taint, which it has tolerated all the time.
func TestATolerationThatWasAlwaysThereCountsAfterARestartWithoutALimit(t *testing.T) {
	tolerated := func(p *clusterv1beta1.Placement) {
		p.Spec.Tolerations = []clusterv1beta1.Toleration{{Operator: clusterv1beta1.TolerationOpExists}}
	}
	for sentence, restarts := range map[string]bool{"one process": false, "a restart": true} {
		t.Run(sentence, func(t *testing.T) {
			h := newPagesHub(t, false, 0, tolerated)
			h.goesSilent()
			h.passes(time.Hour)
			h.othersDrop()
			h.passes(time.Minute)
			require.Empty(t, h.removed, "five minutes must pass")
			recorder := events.NewFakeRecorder(100)
			if restarts {
				h.r = &Reconciler{
					Client: h, Live: h, AddOns: h.r.AddOns, Clock: h.clock, Workers: 1,
					Placements: &fleet.Placements{Client: h, Clock: h.clock},
				}
				h.q.Add(ofFleet("hello"))
			}
			h.r.Recorder = recorder
			h.passes(24 * time.Hour)
			assert.Equal(t, []string{"c1"}, h.removed)
			for len(recorder.Events) > 0 {
				assert.NotContains(t, <-recorder.Events, "does not tolerate taint", "it does")
			}
		})
	}
}
