package install

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/event"
)

// A tool that deploys names another Placement in each release, and deletes the one before. Nobody asks for that again.
func TestWhatAPlacementDecidedIsForgottenWhenItIsGoneAndNotListed(t *testing.T) {
	key := types.NamespacedName{Namespace: "ns", Name: "p"}
	var gone time.Time
	deleted := func(h *pagesHub) {
		var p clusterv1beta1.Placement
		require.NoError(t, h.Get(t.Context(), key, &p))
		require.NoError(t, h.Delete(t.Context(), &p))
		_, err := h.r.Placements.Decisions(t.Context(), key)
		require.NoError(t, err)
		gone = h.clock.Now()
		h.clock.step(time.Minute)
		h.r.ofPlacement().DeleteFunc(t.Context(), event.DeleteEvent{Object: &p}, h.q)
	}
	definition := func(h *pagesHub) *addonv1alpha1.ClusterManagementAddOn {
		var cma addonv1alpha1.ClusterManagementAddOn
		require.NoError(t, h.Get(t.Context(), types.NamespacedName{Name: "hello"}, &cma))
		return &cma
	}
	unlisted := func(h *pagesHub) {
		older := definition(h)
		newer := older.DeepCopy()
		newer.Spec.InstallStrategy.Placements[0].Name = "p-2"
		require.NoError(t, h.Update(t.Context(), newer))
		h.r.ofClusterManagementAddOn().UpdateFunc(t.Context(), event.UpdateEvent{ObjectOld: older, ObjectNew: newer}, h.q)
	}
	undefined := func(h *pagesHub) {
		cma := definition(h)
		require.NoError(t, h.Delete(t.Context(), cma))
		h.r.ofClusterManagementAddOn().DeleteFunc(t.Context(), event.DeleteEvent{Object: cma}, h.q)
	}
	for sentence, tc := range map[string]struct {
		changes []func(*pagesHub)
		known   bool
	}{
		"it is deleted when no add-on lists it": {changes: []func(*pagesHub){unlisted, deleted}},
		"it is listed no more when it is gone":  {changes: []func(*pagesHub){deleted, unlisted}},
		"its add-on is deleted as well":         {changes: []func(*pagesHub){deleted, undefined}},
		"not while an add-on lists it":          {changes: []func(*pagesHub){deleted}, known: true},
		"not while it exists":                   {changes: []func(*pagesHub){unlisted}, known: true},
	} {
		t.Run(sentence, func(t *testing.T) {
			h := newPagesHub(t, true, 0, func(*clusterv1beta1.Placement) {})
			before, err := h.r.Placements.Decisions(t.Context(), key)
			require.NoError(t, err)
			for _, change := range tc.changes {
				change(h)
			}
			after, err := h.r.Placements.Decisions(t.Context(), key)
			require.NoError(t, err)
			assert.Equal(t, tc.known, before == after || !after.DoubtedSince.After(gone), "a first look knows nothing of before")
		})
	}
}
