package deploy

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// Shows: security/shared-roles
// The add-on on c3 never has a good pass, because something is wrong there. An administrator deletes it, or the cluster.
// All that are left had their passes, before and after that.
func TestTheBindingOfAllClustersGoesAfterTheAddOnThatHeldItUpIsDeleted(t *testing.T) {
	former := roleBinding("shared", "", "a")
	r := formerWorld(t, interceptor.Funcs{}, former, addOnAt("c1"), addOnAt("c2"), addOnAt("c3"))
	var f facts
	f.former = []*rbacv1.RoleBinding{former}
	pass := func(clusters ...string) {
		for _, cluster := range clusters {
			require.NoError(t, r.dropFormer(t.Context(), types.NamespacedName{Namespace: cluster, Name: "a"}, "mca", f))
		}
	}
	pass("c1", "c2")
	require.NoError(t, r.leaveFormer(t.Context(), types.NamespacedName{Namespace: "c3", Name: "a"}))
	require.NoError(t, r.Client.Get(t.Context(), client.ObjectKeyFromObject(former), &rbacv1.RoleBinding{}),
		"the cache still has the one that is gone")
	require.NoError(t, r.Client.Delete(t.Context(), addOnAt("c3")))
	_, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: types.NamespacedName{Namespace: "c3", Name: "a"}})
	require.NoError(t, err)
	gone := r.Client.Get(t.Context(), client.ObjectKeyFromObject(former), &rbacv1.RoleBinding{})
	assert.True(t, apierrors.IsNotFound(gone), "until the hub manager restarts, denied agents keep what it grants")
}
