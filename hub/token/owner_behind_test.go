package token

import (
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

	"github.com/spokelet/spokelet/internal/addonapi"
	"github.com/spokelet/spokelet/internal/names"
	tokens "github.com/spokelet/spokelet/internal/token"
)

// A hub manager of OCM made the ServiceAccount, without an owner, and the add-on was made again since. The cache has the
// earlier one: as its owner, it would have the garbage collector delete the ServiceAccount, and void all tokens.
//
// Shows: registration/infrastructure-confirmed
func TestNoServiceAccountIsGivenToAnAddOnThatOnlyTheCacheHas(t *testing.T) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		corev1.AddToScheme, rbacv1.AddToScheme, addonv1beta1.Install, clusterv1.Install,
	} {
		require.NoError(t, add(scheme))
	}
	earlier, present := addOn(kube(tokens.Driver)), addOn(kube(tokens.Driver))
	earlier.UID, present.UID = "earlier", "present"
	build := func(addOn *addonv1beta1.ManagedClusterAddOn) client.Client {
		b := fake.NewClientBuilder().WithScheme(scheme).WithStatusSubresource(&addonv1beta1.ManagedClusterAddOn{}).WithObjects(
			&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: key.Namespace, Labels: map[string]string{names.LabelClusterName: key.Namespace}}},
			&clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: key.Namespace}, Spec: clusterv1.ManagedClusterSpec{HubAcceptsClient: true}},
			addOn.DeepCopy())
		return b.WithObjects(wanted(key, nil)...).Build()
	}
	cached := build(earlier)
	r := &Reconciler{
		Client: cached, Live: build(present), AddOns: addonapi.Client{Client: cached, Wire: addonapi.WireBeta},
		Clock: clocktesting.NewFakePassiveClock(now),
	}
	_, _ = r.Reconcile(t.Context(), ctrl.Request{NamespacedName: key})
	account := &corev1.ServiceAccount{}
	require.NoError(t, cached.Get(t.Context(), client.ObjectKeyFromObject(wanted(key, nil)[0]), account))
	for _, owner := range account.OwnerReferences {
		assert.NotEqual(t, earlier.UID, owner.UID, "its only owner is %s, which does not exist: it is collected", owner.UID)
	}
}
