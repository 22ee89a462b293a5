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

// The hub manager starts with an API server that is behind for one kind. Without its ServiceAccount, all tokens of an
// add-on are void.
//
// Shows: registration/infrastructure-confirmed
func TestAServiceAccountIsRemovedOnlyForWhatTheAPIServerHas(t *testing.T) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		corev1.AddToScheme, rbacv1.AddToScheme, addonv1beta1.Install, clusterv1.Install,
	} {
		require.NoError(t, add(scheme))
	}
	cluster := func(accepted bool) client.Object {
		return &clusterv1.ManagedCluster{
			ObjectMeta: metav1.ObjectMeta{Name: key.Namespace}, Spec: clusterv1.ManagedClusterSpec{HubAcceptsClient: accepted},
		}
	}
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
				b := fake.NewClientBuilder().WithScheme(scheme).WithStatusSubresource(&addonv1beta1.ManagedClusterAddOn{})
				b = b.WithObjects(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
					Name: key.Namespace, Labels: map[string]string{names.LabelClusterName: key.Namespace},
				}})
				for _, object := range wanted(key, token) {
					object.SetAnnotations(map[string]string{"first": "yes"})
					b = b.WithObjects(object)
				}
				for _, object := range objects {
					copied, isObject := object.DeepCopyObject().(client.Object)
					require.True(t, isObject)
					b = b.WithObjects(copied)
				}
				return b.Build()
			}
			cached := build(tc.cached)
			r := &Reconciler{
				Client: cached, Live: build(tc.live), AddOns: addonapi.Client{Client: cached, Wire: addonapi.WireBeta},
				Clock: clocktesting.NewFakePassiveClock(now),
			}
			_, _ = r.Reconcile(t.Context(), ctrl.Request{NamespacedName: key}) // The status may be a lost race.
			for _, object := range wanted(key, token) {
				found := emptyLike(object)
				err := cached.Get(t.Context(), client.ObjectKeyFromObject(object), found)
				require.NoError(t, client.IgnoreNotFound(err))
				assert.Equal(t, tc.removed, found.GetAnnotations() == nil, "%T: %v", object, err)
			}
		})
	}
}
