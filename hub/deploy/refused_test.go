package deploy

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/spokelet/spokelet/hub/addon"
	"github.com/spokelet/spokelet/internal/reconcile"
)

// After a restart: the namespace ceases to be that of a cluster while a pass reads it. The status
// says already that the permission is refused, so the pass writes nothing, and only the event starts another one.
func TestANamespaceThatChangesWhileItIsReadWakesWhoReadsIt(t *testing.T) {
	var read int
	r := bindingReader(t, &read, ownNamespace("c1"), ownNamespace("other"))
	inner, is := r.Client.(client.WithWatch)
	require.True(t, is)
	var woken []ctrl.Request
	key := types.NamespacedName{Namespace: "c1", Name: "a"}
	r.Client = interceptor.NewClient(inner, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, k client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			err := c.Get(ctx, k, o, opts...)
			if _, is := o.(*metav1.PartialObjectMetadata); is && k.Name == "other" && woken == nil {
				woken = append([]ctrl.Request{}, r.asksFor.requests("other")...) // as ofNamespace does
			}
			return err
		},
	})
	b, err := observeOn(t, r, "c1", "a", permitting{}, addon.Setup{Permissions: []addon.Permission{permission("other", "Role", "r")}})
	require.NoError(t, err)
	require.Error(t, b.refused)
	assert.Contains(t, woken, ctrl.Request{NamespacedName: key}, "the event starts another pass")
}

// A namespace becomes that of another cluster after the pass read it, and before the binding is in the cache.
func TestANamespaceThatBecomesThatOfAClusterMeanwhileWakesWhoBindsThere(t *testing.T) {
	var woken []ctrl.Request
	var r *Reconciler
	becomes := func(ctx context.Context, c client.WithWatch) error {
		shared := ownNamespace("shared")
		if err := c.Update(ctx, shared); err != nil {
			return err
		}
		woken = append([]ctrl.Request{}, r.asksFor.requests("shared")...) // as ofNamespace does
		var there rbacv1.RoleBindingList                                  // and these
		if err := c.List(ctx, &there, client.InNamespace("shared")); err != nil {
			return err
		}
		for i := range there.Items {
			woken = append(woken, ofBinding(ctx, &there.Items[i])...)
		}
		return nil
	}
	r = formerWorld(t, interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			if _, is := o.(*rbacv1.RoleBinding); is && woken == nil {
				if err := becomes(ctx, c); err != nil {
					return err
				}
			}
			return c.Create(ctx, o, opts...)
		},
	}, addOnAt("c1"), ownNamespace("c1"), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shared"}},
		&clusterv1.ManagedCluster{
			ObjectMeta: metav1.ObjectMeta{Name: "c1"}, Spec: clusterv1.ManagedClusterSpec{HubAcceptsClient: true},
		})
	r.Agents = only{}
	result, err := r.Reconcile(t.Context(), reconcile.Request("c1", "a")[0])
	require.NoError(t, err)
	require.NotNil(t, woken)
	var all rbacv1.RoleBindingList
	require.NoError(t, r.Client.List(t.Context(), &all, client.InNamespace("shared")))
	require.Len(t, all.Items, 1, "the agent of c1 has a role in the namespace of cluster shared")
	assert.True(t, len(woken) > 0 || soon(result, err), "a pass takes it away")
}

// The add-on asks for roles in two namespaces. The first one becomes that of another cluster while the second is read.
func TestANamespaceThatChangesWhileTheNextOneIsReadWakesWhoReadsIt(t *testing.T) {
	var read int
	r := bindingReader(t, &read, ownNamespace("c1"), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "first"}},
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "second"}})
	inner, is := r.Client.(client.WithWatch)
	require.True(t, is)
	var woken []ctrl.Request
	r.Client = interceptor.NewClient(inner, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, k client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			if _, is := o.(*metav1.PartialObjectMetadata); is && k.Name == "second" && woken == nil {
				require.NoError(t, c.Update(ctx, ownNamespace("first")))
				woken = append([]ctrl.Request{}, r.asksFor.requests("first")...) // as ofNamespace does
			}
			return c.Get(ctx, k, o, opts...)
		},
	})
	b, err := observeOn(t, r, "c1", "a", permitting{}, addon.Setup{Permissions: []addon.Permission{
		permission("first", "Role", "r"), permission("second", "Role", "r"),
	}})
	require.NoError(t, err)
	require.NoError(t, b.refused, "the role is bound")
	assert.Contains(t, woken, ctrl.Request{NamespacedName: types.NamespacedName{Namespace: "c1", Name: "a"}})
}
