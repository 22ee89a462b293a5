package deploy

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/spokelet/spokelet/hub/addon"
	"github.com/spokelet/spokelet/internal/addonapi"
)

// The hub manager starts with an API server that is behind for add-ons: its cache has not that on c2 yet, whose agent
// has its role by the binding for all clusters only.
//
// Shows: hub/removed-when-confirmed
func TestNoRoleForAllClustersIsTakenByWhatOnlyTheCacheSays(t *testing.T) {
	former := roleBinding("shared", "", "a")
	build := func(addOns ...client.Object) client.Client {
		return fake.NewClientBuilder().WithScheme(hubScheme(t)).WithObjects(addOns...).WithObjects(former.DeepCopy()).
			WithStatusSubresource(&addonv1alpha1.ManagedClusterAddOn{}).
			WithIndex(&rbacv1.RoleBinding{}, addonapi.IndexBinding, addonapi.BindingKeys).
			WithIndex(&rbacv1.RoleBinding{}, addonapi.IndexSharedBinding, addonapi.SharedBindingKeys).
			WithIndex(&workv1.ManifestWork{}, indexHosted, func(client.Object) []string { return nil }).
			WithIndex(&clusterv1.ManagedCluster{}, metav1.ObjectNameField, nameOf).
			WithIndex(&addonv1alpha1.ManagedClusterAddOn{}, metav1.ObjectNameField, nameOf).
			WithIndex(&addonv1alpha1.ManagedClusterAddOn{}, addonapi.IndexName, nameOf).Build()
	}
	cache, live := build(addOnAt("c1")), build(addOnAt("c1"), addOnAt("c2"))
	r := &Reconciler{
		Client: cache, Bindings: cache, Live: live, AddOns: addonapi.Client{Client: cache}, Agents: addon.Registry{},
		Configurer: unconfigured{}, Clock: clocktesting.NewFakePassiveClock(time.Unix(1000, 0)),
	}
	f := facts{former: []*rbacv1.RoleBinding{former}}
	assert.NoError(t, r.dropFormer(t.Context(), types.NamespacedName{Namespace: "c1", Name: "a"}, f))
	assert.NoError(t, cache.Get(t.Context(), client.ObjectKeyFromObject(former), &rbacv1.RoleBinding{}),
		"the agent on c2, of an add-on that the API server has, lost its role")
}
