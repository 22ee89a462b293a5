package rollout

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
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
	"github.com/spokelet/spokelet/internal/gate"
	"github.com/spokelet/spokelet/internal/policies"
)

// ruled is a reconciler on a hub with objects, and counts what it patches.
func ruled(t *testing.T, patches *int, objects ...client.Object) *Reconciler {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		addonv1alpha1.Install, clusterv1beta1.Install, clusterv1.Install, appsv1.AddToScheme, policies.Install,
	} {
		require.NoError(t, add(scheme))
	}
	c := interceptor.NewClient(fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).
		WithStatusSubresource(&policies.AddOnPolicy{}, &addonv1alpha1.ClusterManagementAddOn{}).
		WithIndex(&addonv1alpha1.ManagedClusterAddOn{}, addonapi.IndexName, func(o client.Object) []string { return []string{o.GetName()} }).
		Build(), interceptor.Funcs{SubResourcePatch: func(ctx context.Context, c client.Client, sub string, o client.Object,
		patch client.Patch, options ...client.SubResourcePatchOption) error {
		*patches++
		return c.SubResource(sub).Patch(ctx, o, patch, options...)
	}})
	clock := clocktesting.NewFakePassiveClock(fixture.Noon())
	return &Reconciler{
		AddOns: addonapi.Client{Client: c}, Client: c, Clock: clock, Placements: &fleet.Placements{Client: c, Clock: clock},
		Store: &addonconfig.Store{Client: c, Home: "home"}, Gates: &gate.Reader{Client: c},
	}
}

func ruledPass(t *testing.T, r *Reconciler) {
	t.Helper()
	_, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKey{Name: "hello"}})
	require.NoError(t, err)
}

// A ClusterManagementAddOn is deleted, or renamed, while clusters wait for its policy.
func TestThePolicyOfADeletedAddOnCountsNobody(t *testing.T) {
	policy := &policies.AddOnPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: "hello", UID: "u", Generation: 2},
		Spec:       policies.AddOnPolicySpec{Paused: &policies.Pause{}},
		Status:     policies.AddOnPolicyStatus{ObservedGeneration: 1, Waiting: 3, Contents: []policies.Content{{Name: "0123456789ab", Clusters: 3}}},
	}
	patches := 0
	r := ruled(t, &patches, policy)
	ruledPass(t, r)
	require.NoError(t, r.Client.Get(t.Context(), client.ObjectKeyFromObject(policy), policy))
	assert.Zero(t, policy.Status.Waiting)
	assert.EqualValues(t, 2, policy.Status.ObservedGeneration, "kubectl spokelet rollout approve says that the hub manager has not seen it yet")
}

// A hub that is idle sends nothing.
func TestThePolicyOfAnAddOnIsWrittenOnce(t *testing.T) {
	patches := 0
	r := ruled(t, &patches,
		&policies.AddOnPolicy{ObjectMeta: metav1.ObjectMeta{Name: "hello", UID: "u", Generation: 2}, Spec: policies.AddOnPolicySpec{Paused: &policies.Pause{}}},
		&addonv1alpha1.ClusterManagementAddOn{ObjectMeta: metav1.ObjectMeta{Name: "hello", UID: "c"}})
	ruledPass(t, r)
	before := patches
	for range 3 {
		ruledPass(t, r)
	}
	assert.Equal(t, before, patches)
}
