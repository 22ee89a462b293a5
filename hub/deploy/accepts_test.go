package deploy

import (
	"cmp"
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/spokelet/spokelet/hub/addon"
	"github.com/spokelet/spokelet/internal/reconcile"
)

// An add-on that is installed on a whole fleet asks for its clusters together.
func TestTheAcceptanceOfManyClustersIsAskedForTogether(t *testing.T) {
	const count, denied = 250, 200
	var all []client.Object
	var clusters []*clusterv1.ManagedCluster
	for i := range count {
		cluster := clusterThatIs(fmt.Sprintf("c%d", i), i < denied)
		cluster.UID = types.UID(fmt.Sprintf("uid-%d", i))
		all, clusters = append(all, cluster), append(clusters, cluster)
	}
	lists, broken := 0, false
	live := cacheOrHub(t, interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			if lists++; broken {
				return apierrors.NewServiceUnavailable("down")
			}
			return c.List(ctx, list, opts...)
		},
	}, all...)
	r := &Reconciler{Live: live}
	binds := plan{bindings: []bindingStep{{Verb: reconcile.Create, After: &rbacv1.RoleBinding{}}}}
	asks := func(i int) (bool, error) {
		return r.grants(t.Context(), facts{cluster: clusters[i]}, binds)
	}
	for i := range fewAccepts {
		asked, err := asks(i)
		require.NoError(t, err)
		assert.True(t, asked, "each of the first clusters is asked for by itself")
	}
	assert.Zero(t, lists)
	broken = true
	_, err := asks(fewAccepts)
	require.ErrorContains(t, err, "asking which clusters the hub accepts")
	broken, lists = false, 0
	for i := fewAccepts; i < denied; i++ {
		asked, err := asks(i)
		require.NoError(t, err)
		assert.False(t, asked, "cluster %d", i)
	}
	assert.Equal(t, 1, lists, "all clusters are listed once")
	for i := denied; i < count; i++ {
		asked, err := asks(i)
		require.NoError(t, err)
		assert.True(t, asked, "a cluster that is not accepted is not taken as accepted")
	}
	again := clusters[0].DeepCopy()
	again.UID = "another"
	asked, err := r.grants(t.Context(), facts{cluster: again}, binds)
	require.NoError(t, err)
	assert.True(t, asked, "another cluster of the name is asked for")
	assert.LessOrEqual(t, lists, 3, "the more clusters there are, the more are asked for one by one before the next list")
}

// Kubernetes collects what an add-on owned. What it does not collect, the hub manager deletes.
func TestTheRolesOfAnAddOnThatIsGone(t *testing.T) {
	for sentence, tc := range map[string]struct {
		edit    func(*rbacv1.RoleBinding)
		version string
		denied  bool
		stays   bool
	}{
		"Kubernetes collects the one that it owned":                     {stays: true},
		"one of a denied cluster does not wait for that":                {denied: true},
		"one whose owner has a version that we do not write is deleted": {version: "addon.open-cluster-management.io/v1alpha1"},
		"one that lost its owner is deleted":                            {edit: func(b *rbacv1.RoleBinding) { b.OwnerReferences = nil }},
		"one that another object owns, too, is deleted": {
			edit: func(b *rbacv1.RoleBinding) {
				b.OwnerReferences = append(b.OwnerReferences, metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: "a", UID: "c"})
			},
		},
		"one in another namespace, where an owner means nothing, is deleted": {
			edit: func(b *rbacv1.RoleBinding) {
				owners := b.OwnerReferences
				*b = *roleBinding("shared", "c1", "a")
				b.OwnerReferences = owners
			},
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			binding := roleBinding("c1", "c1", "a")
			binding.OwnerReferences[0].APIVersion = cmp.Or(tc.version, "addon.open-cluster-management.io/v1beta1")
			if tc.edit != nil {
				tc.edit(binding)
			}
			hub := cacheOrHub(t, interceptor.Funcs{}, clusterThatIs("c1", !tc.denied), binding, ownNamespace("c1"))
			r := behindIn(hub, hub, addon.Registry{})
			_, err := r.Reconcile(t.Context(), reconcile.Request("c1", "a")[0])
			require.NoError(t, err)
			err = hub.Get(t.Context(), client.ObjectKeyFromObject(binding), &rbacv1.RoleBinding{})
			assert.Equal(t, tc.stays, err == nil, "%v", err)
		})
	}
}
