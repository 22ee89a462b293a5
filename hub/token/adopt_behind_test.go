package token

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clocktesting "k8s.io/utils/clock/testing"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/spokelet/spokelet/internal/addonapi"
	"github.com/spokelet/spokelet/internal/names"
	tokens "github.com/spokelet/spokelet/internal/token"
)

// As TestNoServiceAccountIsGivenToAnAddOnThatOnlyTheCacheHas, but the cache is behind for the ServiceAccount as well and
// does not have it yet: it is adopted.
//
// Shows: registration/infrastructure-confirmed
func TestNoServiceAccountIsAdoptedForAnAddOnThatOnlyTheCacheHas(t *testing.T) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		corev1.AddToScheme, rbacv1.AddToScheme, addonv1beta1.Install, clusterv1.Install,
	} {
		require.NoError(t, add(scheme))
	}
	earlier, present := addOn(kube(tokens.Driver)), addOn(kube(tokens.Driver))
	earlier.UID, present.UID = "earlier", "present"
	build := func(addOn *addonv1beta1.ManagedClusterAddOn, more ...client.Object) client.WithWatch {
		return fake.NewClientBuilder().WithScheme(scheme).WithStatusSubresource(&addonv1beta1.ManagedClusterAddOn{}).WithObjects(
			&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: key.Namespace, Labels: map[string]string{names.LabelClusterName: key.Namespace}}},
			&clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: key.Namespace}, Spec: clusterv1.ManagedClusterSpec{HubAcceptsClient: true}},
			addOn.DeepCopy()).WithObjects(more...).Build()
	}
	cache, live := build(earlier), build(present, wanted(key, nil)...)
	// What is read is of the cache, and what is written goes to the API server.
	both := interceptor.NewClient(live, interceptor.Funcs{
		Get: func(ctx context.Context, _ client.WithWatch, k client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			return cache.Get(ctx, k, o, opts...)
		},
		List: func(ctx context.Context, _ client.WithWatch, l client.ObjectList, opts ...client.ListOption) error {
			return cache.List(ctx, l, opts...)
		},
	})
	r := &Reconciler{
		Client: both, Live: live, AddOns: addonapi.Client{Client: both, Wire: addonapi.WireBeta},
		Clock: clocktesting.NewFakePassiveClock(now),
	}
	_, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: key})
	t.Log("pass:", err)
	account := &corev1.ServiceAccount{}
	require.NoError(t, live.Get(t.Context(), client.ObjectKeyFromObject(wanted(key, nil)[0]), account))
	for _, owner := range account.OwnerReferences {
		assert.NotEqual(t, earlier.UID, owner.UID, "its only owner is %s, which does not exist: it is collected", owner.UID)
	}
}
