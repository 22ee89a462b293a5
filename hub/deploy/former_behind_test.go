package deploy

import (
	"testing"

	"github.com/stretchr/testify/assert"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/spokelet/spokelet/hub/addon"
)

// The hub manager starts with an API server that is behind for add-ons: its cache has not that on c2 yet, whose agent
// has its role by the binding for all clusters only.
//
// Shows: hub/removed-when-confirmed
func TestNoRoleForAllClustersIsTakenByWhatOnlyTheCacheSays(t *testing.T) {
	former := roleBinding("shared", "", "a")
	build := func(addOns ...client.Object) client.Client {
		return cacheOrHub(t, interceptor.Funcs{}, append(addOns, former)...)
	}
	cache, live := build(addOnAt("c1")), build(addOnAt("c1"), addOnAt("c2"))
	r := behindIn(cache, live, addon.Registry{})
	f := facts{former: []*rbacv1.RoleBinding{former}}
	assert.NoError(t, r.dropFormer(t.Context(), types.NamespacedName{Namespace: "c1", Name: "a"}, "mca", f))
	assert.NoError(t, cache.Get(t.Context(), client.ObjectKeyFromObject(former), &rbacv1.RoleBinding{}),
		"the agent on c2, of an add-on that the API server has, lost its role")
}
