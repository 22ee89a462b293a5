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

// cluster returns the ManagedCluster of the tests.
func cluster(accepted bool) client.Object {
	return &clusterv1.ManagedCluster{
		ObjectMeta: metav1.ObjectMeta{Name: key.Namespace}, Spec: clusterv1.ManagedClusterSpec{HubAcceptsClient: accepted},
	}
}

// hubWith returns a hub, or a cache of it, with the namespace of the cluster and copies of objects.
func hubWith(t *testing.T, objects ...client.Object) client.WithWatch {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		corev1.AddToScheme, rbacv1.AddToScheme, addonv1beta1.Install, clusterv1.Install,
	} {
		require.NoError(t, add(scheme))
	}
	b := fake.NewClientBuilder().WithScheme(scheme).WithStatusSubresource(&addonv1beta1.ManagedClusterAddOn{})
	b = b.WithObjects(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		Name: key.Namespace, Labels: map[string]string{names.LabelClusterName: key.Namespace},
	}})
	for _, object := range objects {
		copied, isObject := object.DeepCopyObject().(client.Object)
		require.True(t, isObject)
		b = b.WithObjects(copied)
	}
	return b.Build()
}

// The hub manager starts with an API server that is behind for one kind. Without its ServiceAccount, all tokens of an
// add-on are void.
//
// Shows: registration/infrastructure-confirmed
func TestAServiceAccountIsRemovedOnlyForWhatTheAPIServerHas(t *testing.T) {
	earlier := addOn(kube(tokens.Driver))
	earlier.UID = "earlier"
	deleting := addOn(kube(tokens.Driver))
	deleting.DeletionTimestamp, deleting.Finalizers = &metav1.Time{Time: now}, []string{"example.com/x"}
	token := addOn(kube(tokens.Driver))
	for sentence, tc := range map[string]struct {
		cached, live []client.Object
		removed      bool
	}{
		"the add-on is not in the cache yet":          {cached: []client.Object{cluster(true)}, live: []client.Object{cluster(true), token}},
		"the add-on is gone":                          {cached: []client.Object{cluster(true)}, live: []client.Object{cluster(true)}, removed: true},
		"the agent had another driver":                {cached: []client.Object{cluster(true), addOn(kube("csr"))}, live: []client.Object{cluster(true), token}},
		"the agent has another driver":                {cached: []client.Object{cluster(true), addOn(kube("csr"))}, live: []client.Object{cluster(true), addOn(kube("csr"))}, removed: true},
		"an earlier add-on had the name":              {cached: []client.Object{cluster(true), earlier}, live: []client.Object{cluster(true), token}},
		"an earlier add-on was being deleted":         {cached: []client.Object{cluster(true), deleting}, live: []client.Object{cluster(true), token}},
		"the cluster is not in the cache yet":         {cached: []client.Object{token}, live: []client.Object{cluster(true), token}},
		"the cluster was not accepted":                {cached: []client.Object{cluster(false), token}, live: []client.Object{cluster(true), token}},
		"the cluster is not accepted":                 {cached: []client.Object{cluster(false), token}, live: []client.Object{cluster(false), token}, removed: true},
		"it was accepted, and the cache shows it yet": {cached: []client.Object{cluster(true), token}, live: []client.Object{cluster(false), token}},
	} {
		t.Run(sentence, func(t *testing.T) {
			build := func(objects []client.Object) client.Client {
				first := wanted(key, token, "")
				for _, object := range first {
					object.SetAnnotations(map[string]string{"first": "yes"})
				}
				return hubWith(t, append(first, objects...)...)
			}
			cached := build(tc.cached)
			r := &Reconciler{
				Client: cached, Live: build(tc.live), AddOns: addonapi.Client{Client: cached, Wire: addonapi.WireBeta},
				Clock: clocktesting.NewFakePassiveClock(now),
			}
			_, _ = r.Reconcile(t.Context(), ctrl.Request{NamespacedName: key}) // The status may be a lost race.
			for _, object := range wanted(key, token, "") {
				found := emptyLike(object)
				err := cached.Get(t.Context(), client.ObjectKeyFromObject(object), found)
				require.NoError(t, client.IgnoreNotFound(err))
				assert.Equal(t, tc.removed, found.GetAnnotations() == nil, "%T: %v", object, err)
			}
		})
	}
}

// earlierAndPresent are an add-on that only the cache has, and the one of its name that the API server has.
func earlierAndPresent() (earlier, present *addonv1beta1.ManagedClusterAddOn) {
	earlier, present = addOn(kube(tokens.Driver)), addOn(kube(tokens.Driver))
	earlier.UID, present.UID = "earlier", "present"
	return earlier, present
}

// A hub manager of OCM made the ServiceAccount, without an owner, and the add-on was made again since. The cache has the
// earlier one: as its owner, it would have the garbage collector delete the ServiceAccount, and void all tokens.
//
// Shows: registration/infrastructure-confirmed
func TestNoServiceAccountIsGivenToAnAddOnThatOnlyTheCacheHas(t *testing.T) {
	earlier, present := earlierAndPresent()
	cached := hubWith(t, append(wanted(key, nil, ""), cluster(true), earlier)...)
	r := &Reconciler{
		Client: cached, Live: hubWith(t, append(wanted(key, nil, ""), cluster(true), present)...),
		AddOns: addonapi.Client{Client: cached, Wire: addonapi.WireBeta}, Clock: clocktesting.NewFakePassiveClock(now),
	}
	_, _ = r.Reconcile(t.Context(), ctrl.Request{NamespacedName: key})
	isNotOf(t, earlier, cached)
}

// The cache is behind for the ServiceAccount as well and does not have it yet: it is adopted.
//
// Shows: registration/infrastructure-confirmed
func TestNoServiceAccountIsAdoptedForAnAddOnThatOnlyTheCacheHas(t *testing.T) {
	earlier, present := earlierAndPresent()
	cache, live := hubWith(t, cluster(true), earlier), hubWith(t, append(wanted(key, nil, ""), cluster(true), present)...)
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
	_, _ = r.Reconcile(t.Context(), ctrl.Request{NamespacedName: key})
	isNotOf(t, earlier, live)
}

// isNotOf checks that the ServiceAccount has no owner that does not exist: it would be collected.
func isNotOf(t *testing.T, addOn *addonv1beta1.ManagedClusterAddOn, c client.Client) {
	t.Helper()
	account := &corev1.ServiceAccount{}
	require.NoError(t, c.Get(t.Context(), client.ObjectKeyFromObject(wanted(key, nil, "")[0]), account))
	for _, owner := range account.OwnerReferences {
		assert.NotEqual(t, addOn.UID, owner.UID)
	}
}
