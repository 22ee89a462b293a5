package install

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/spokelet/spokelet/hub/fleet"
	"github.com/spokelet/spokelet/internal/addonapi"
	"github.com/spokelet/spokelet/internal/names"
)

// afterFirstDelete does something once, after the first add-on was deleted.
func (h *pagesHub) afterFirstDelete(then func()) {
	done := false
	h.r.AddOns = addonapi.Client{Client: interceptor.NewClient(h.WithWatch, interceptor.Funcs{
		Delete: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.DeleteOption) error {
			if !done {
				done = true
				defer then()
			}
			return c.Delete(ctx, o, options...)
		},
	})}
}

// A user takes a placement out of the definition by mistake (or sets manual installation, or gives the lifecycle to
// others), and takes that back while the add-ons are being removed from thousands of clusters.
func TestARemovalEndsWhenTheDefinitionIsTakenBack(t *testing.T) {
	for sentence, back := range map[string]func(*addonv1alpha1.ClusterManagementAddOn){
		"the placement that selects them is listed again": func(cma *addonv1alpha1.ClusterManagementAddOn) {
			cma.Spec.InstallStrategy.Placements = append(cma.Spec.InstallStrategy.Placements, addonv1alpha1.PlacementStrategy{
				PlacementRef: addonv1alpha1.PlacementRef{Namespace: "ns", Name: "q"},
			})
		},
		"manual installation": func(cma *addonv1alpha1.ClusterManagementAddOn) {
			cma.Spec.InstallStrategy = addonv1alpha1.InstallStrategy{Type: addonv1alpha1.AddonInstallStrategyManual}
		},
		"another manager": func(cma *addonv1alpha1.ClusterManagementAddOn) {
			cma.Annotations = map[string]string{names.AnnotationLifecycle: "self"}
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			h := newPagesHub(t, true, 0, func(*clusterv1beta1.Placement) {})
			h.dropped("c1", "c2")
			h.afterFirstDelete(func() { // cache and API server both have it
				var cma addonv1alpha1.ClusterManagementAddOn
				require.NoError(t, h.Get(t.Context(), types.NamespacedName{Name: "hello"}, &cma))
				was := cma.DeepCopy()
				back(&cma)
				require.NoError(t, h.Update(t.Context(), &cma))
				h.r.ofClusterManagementAddOn().UpdateFunc(t.Context(), event.UpdateEvent{ObjectOld: was, ObjectNew: &cma}, h.q)
			})
			h.passes(4 * time.Second)
			assert.Equal(t, []string{"c1"}, h.removed, "the definition said otherwise before the add-on of c2 was deleted")
		})
	}
}

// A ManagedClusterSetBinding was deleted by mistake and is created again while add-ons are being removed. The watch of
// bindings has told the placement, whose pass waits for its turn: it writes many pages.
func TestARemovalEndsWhenASetIsChangedBack(t *testing.T) {
	h := newPagesHub(t, true, 0, func(*clusterv1beta1.Placement) {})
	passes, p := &fleet.Passes{}, types.NamespacedName{Namespace: "ns", Name: "p"}
	h.r.Placements.Passes = passes
	begun := passes.Begin(p, h.clock.Now())
	h.dropped("c1", "c2")
	passes.End(p, begun)
	h.afterFirstDelete(func() { passes.Ask(p, fleet.EachCluster, h.clock.Now()) })
	h.passes(4 * time.Second)
	assert.Equal(t, []string{"c1"}, h.removed, "what concerns all clusters changed, and no pass has looked at that")
}
