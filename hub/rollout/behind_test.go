package rollout

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/spokelet/spokelet/hub/fleet"
	"github.com/spokelet/spokelet/internal/addonapi"
	"github.com/spokelet/spokelet/internal/addonconfig"
	"github.com/spokelet/spokelet/internal/addonconfig/fixture"
	"github.com/spokelet/spokelet/internal/names"
)

// The cache may show a new template before the strategy that was written ahead of it. The conflict of the status shows
// that it is behind.
// Shows: hub/strategy-first
func TestNothingIsAdmittedByAStrategyThatWasReplaced(t *testing.T) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		addonv1alpha1.Install, clusterv1beta1.Install, clusterv1.Install, appsv1.AddToScheme,
	} {
		require.NoError(t, add(scheme))
	}
	management := &addonv1alpha1.ClusterManagementAddOn{ObjectMeta: metav1.ObjectMeta{Name: "hello"}}
	management.Spec.InstallStrategy = addonv1alpha1.InstallStrategy{
		Type: addonv1alpha1.AddonInstallStrategyPlacements, Placements: []addonv1alpha1.PlacementStrategy{
			{PlacementRef: addonv1alpha1.PlacementRef{Namespace: "ns", Name: "p"}},
		},
	}
	page := &clusterv1beta1.PlacementDecision{ObjectMeta: metav1.ObjectMeta{
		Namespace: "ns", Name: "p-decision-1", Labels: map[string]string{names.LabelPlacement: "p"},
	}}
	page.Status.Decisions = []clusterv1beta1.ClusterDecision{{ClusterName: "c1"}}
	behind := true
	c := interceptor.NewClient(fake.NewClientBuilder().WithScheme(scheme).WithStatusSubresource(management).
		WithIndex(&addonv1alpha1.ManagedClusterAddOn{}, addonapi.IndexName, func(o client.Object) []string { return []string{o.GetName()} }).
		WithObjects(management, page,
			&clusterv1beta1.Placement{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "p"}},
			&addonv1alpha1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{Namespace: "c1", Name: "hello", UID: "u"}}).
		Build(), interceptor.Funcs{SubResourcePatch: func(ctx context.Context, c client.Client, sub string, o client.Object,
		patch client.Patch, options ...client.SubResourcePatchOption) error {
		if behind {
			return apierrors.NewConflict(schema.GroupResource{Resource: "clustermanagementaddons"}, o.GetName(), nil)
		}
		return c.SubResource(sub).Patch(ctx, o, patch, options...)
	}})
	clock := clocktesting.NewFakePassiveClock(fixture.Noon())
	r := &Reconciler{
		AddOns: addonapi.Client{Client: c}, Client: c, Clock: clock, Placements: &fleet.Placements{Client: c, Clock: clock},
		Store: &addonconfig.Store{Client: c, Home: "home"},
	}
	pass := func() error {
		_, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: types.NamespacedName{Name: "hello"}})
		return err
	}
	before := pass()
	assert.Zero(t, r.decided.Len(), "the plan is about what was edited meanwhile: %v", before)
	behind = false
	require.NoError(t, pass())
	assert.Equal(t, 1, r.decided.Len())
}
