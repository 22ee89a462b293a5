package install

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"

	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/spokelet/spokelet/hub/fleet"
	"github.com/spokelet/spokelet/internal/addonapi"
	"github.com/spokelet/spokelet/internal/names"
)

// As TestAPageThatIsKeptDropsAClusterNow, and the hub manager starts again a second after the page began to go.
func TestAPageThatIsKeptDropsAClusterAndTheManagerStartsAgain(t *testing.T) {
	const month = 30 * 24 * time.Hour
	for _, restart := range []bool{false, true} {
		h := newPagesHub(t, true, month, func(*clusterv1beta1.Placement) {})
		other := &clusterv1beta1.Placement{ObjectMeta: metav1.ObjectMeta{
			Namespace: "ns", Name: "q", UID: "q", Generation: 1,
			Annotations: map[string]string{clusterv1beta1.PlacementDisableAnnotation: "true"},
		}}
		page := pageOf("q", 1, "c1")
		page.Namespace, page.Labels = "ns", map[string]string{names.LabelPlacement: "q"}
		page.CreationTimestamp = metav1.NewTime(noon().Add(-month))
		require.NoError(t, h.Create(t.Context(), other))
		require.NoError(t, h.Create(t.Context(), page))
		var cma addonv1alpha1.ClusterManagementAddOn
		require.NoError(t, h.Get(t.Context(), types.NamespacedName{Name: "hello"}, &cma))
		cma.Spec.InstallStrategy.Placements = append(cma.Spec.InstallStrategy.Placements, addonv1alpha1.PlacementStrategy{
			PlacementRef: addonv1alpha1.PlacementRef{Namespace: "ns", Name: "q"},
		})
		require.NoError(t, h.Update(t.Context(), &cma))
		h.passes(time.Minute)
		h.begin("p-decision-2")
		h.passes(time.Second)
		require.Empty(t, h.removed)
		if restart {
			h.r = &Reconciler{
				Client: h, Live: h, AddOns: addonapi.Client{Client: h}, Clock: h.clock, Workers: 1,
				Placements: &fleet.Placements{Client: h, Clock: h.clock, Own: true},
			}
			h.q.Add(ofFleet("hello"))
		}
		h.decide()
		h.passes(24 * time.Hour)
		assert.Equal(t, []string{"c2"}, h.removed, "starts again: %t", restart)
	}
}

// OCM schedules. A user deletes a page that a finalizer of another client keeps; OCM goes on writing that page, and
// selects c2 there as before. Nothing is removed; and nothing else that the Placement decides is held up.
func TestOCMGoesOnWritingAPageThatIsKept(t *testing.T) {
	h := newPagesHub(t, false, 0, func(*clusterv1beta1.Placement) {})
	h.begin("p-decision-2")
	h.passes(24 * time.Hour)
	assert.Empty(t, h.removed)
	d, err := h.r.Placements.Decisions(t.Context(), types.NamespacedName{Namespace: "ns", Name: "p"})
	require.NoError(t, err)
	_, why := d.Uncertain(h.clock.Now())
	assert.NoError(t, why, "the rollout of the Placement is held for as long as the page is kept")
}

// OCM schedules. A Placement is replaced, as GitOps tools do, while a finalizer of another client keeps one of its two
// pages. OCM writes the pages of the new one, of which it takes over the one that is kept, as it looks at names only,
// and stops before it writes the status of the Placement. Both clusters are selected before and after.
func TestOCMStopsAfterAPlacementWasReplacedWhileAPageIsKept(t *testing.T) {
	for sentence, kept := range map[string]bool{"no page is kept (control)": false, "a finalizer keeps a page": true} {
		t.Run(sentence, func(t *testing.T) {
			h := newPagesHub(t, false, 0, func(*clusterv1beta1.Placement) {})
			h.r.Limit = Limit{Percent: 1} // it holds each removal that no edit explains
			h.q.Add(ofFleet("hello"))
			h.passes(time.Minute)
			var p clusterv1beta1.Placement
			require.NoError(t, h.Get(t.Context(), types.NamespacedName{Namespace: "ns", Name: "p"}, &p))
			require.NoError(t, h.Delete(t.Context(), &p))
			h.r.ofPlacement().DeleteFunc(t.Context(), event.DeleteEvent{Object: &p}, h.q)
			h.passes(100 * time.Millisecond)
			if kept {
				h.begin("p-decision-1") // the garbage collector
			} else {
				h.gone("p-decision-1")
			}
			h.gone("p-decision-2")
			h.passes(100 * time.Millisecond)

			again := &clusterv1beta1.Placement{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "p", UID: "p2", Generation: 1}}
			require.NoError(t, h.Create(t.Context(), again))
			h.r.ofPlacement().CreateFunc(t.Context(), event.CreateEvent{Object: again}, h.q)
			h.passes(100 * time.Millisecond)
			write := func(number int, cluster string) {
				page := pageOf("p2", number, cluster)
				page.Name = fmt.Sprint("p-decision-", number)
				page.Namespace, page.Labels = "ns", map[string]string{names.LabelPlacement: "p"}
				page.CreationTimestamp = metav1.NewTime(h.clock.Now())
				decided := page.Status
				page.Status = clusterv1beta1.PlacementDecisionStatus{}
				require.NoError(t, h.Create(t.Context(), page))
				h.r.ofDecision().CreateFunc(t.Context(), event.CreateEvent{Object: page.DeepCopy()}, h.q)
				h.passes(50 * time.Millisecond)
				older := page.DeepCopy()
				page.Status = decided
				require.NoError(t, h.Update(t.Context(), page))
				h.r.ofDecision().UpdateFunc(t.Context(), event.UpdateEvent{ObjectOld: older, ObjectNew: page}, h.q)
				h.passes(50 * time.Millisecond)
			}
			if !kept { // else it is as OCM wants it
				write(1, "c1")
			}
			write(2, "c2")
			h.passes(time.Minute) // OCM stopped; another one takes its place within five minutes
			assert.Empty(t, h.removed, "OCM has said that c1 and c2 are selected, and nothing else")
			require.NotEmpty(t, h.page("p-decision-2").Status.Decisions)
			require.Equal(t, "c1", h.page("p-decision-1").Status.Decisions[0].ClusterName)
		})
	}
}

// As the test before; then the page that was kept goes, OCM comes back and writes another one and the status. Later it
// deselects c1.
func TestOCMComesBackAndDeselects(t *testing.T) {
	h := newPagesHub(t, false, 0, func(*clusterv1beta1.Placement) {})
	var p clusterv1beta1.Placement
	require.NoError(t, h.Get(t.Context(), types.NamespacedName{Namespace: "ns", Name: "p"}, &p))
	require.NoError(t, h.Delete(t.Context(), &p))
	h.r.ofPlacement().DeleteFunc(t.Context(), event.DeleteEvent{Object: &p}, h.q)
	h.begin("p-decision-1")
	h.gone("p-decision-2")
	again := &clusterv1beta1.Placement{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "p", UID: "p2", Generation: 1}}
	require.NoError(t, h.Create(t.Context(), again))
	h.r.ofPlacement().CreateFunc(t.Context(), event.CreateEvent{Object: again}, h.q)
	page := pageOf("p2", 2, "c2")
	page.Name = "p-decision-2"
	page.Namespace, page.Labels = "ns", map[string]string{names.LabelPlacement: "p"}
	page.CreationTimestamp = metav1.NewTime(h.clock.Now())
	require.NoError(t, h.Create(t.Context(), page))
	h.r.ofDecision().CreateFunc(t.Context(), event.CreateEvent{Object: page.DeepCopy()}, h.q)
	older := again.DeepCopy()
	again.Status.NumberOfSelectedClusters = 1
	require.NoError(t, h.Update(t.Context(), again))
	h.r.ofPlacement().UpdateFunc(t.Context(), event.UpdateEvent{ObjectOld: older, ObjectNew: again}, h.q)
	h.passes(time.Hour)
	h.end("p-decision-1")
	h.passes(24 * time.Hour)
	assert.Equal(t, []string{"c1"}, h.removed)
}
