package token

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/spokelet/spokelet/internal/addonapi"
	"github.com/spokelet/spokelet/internal/names"
)

func TestRolesOfAServiceAccountAreFoundByIndex(t *testing.T) {
	binding := func(namespace, name string, labels map[string]string) client.Object {
		return &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: labels}}
	}
	of := func(cluster string) map[string]string {
		return map[string]string{
			names.LabelClusterName: cluster, names.LabelAddonName: "a", names.LabelAddonTemplate: "",
		}
	}
	var objects []client.Object
	for c := range 50 {
		cluster := fmt.Sprintf("c%d", c)
		objects = append(objects, binding("shared", "own-"+cluster, of(cluster)), binding(cluster, "here", of(cluster)))
	}
	others := of("c1")
	delete(others, names.LabelAddonTemplate)
	objects = append(objects, binding("shared", "others", others))
	scheme := runtime.NewScheme()
	require.NoError(t, rbacv1.AddToScheme(scheme))
	read := 0
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).
		WithIndex(&rbacv1.RoleBinding{}, addonapi.IndexBinding, addonapi.BindingKeys).
		WithInterceptorFuncs(interceptor.Funcs{
			List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
				err := c.List(ctx, list, opts...)
				if found, isBindings := list.(*rbacv1.RoleBindingList); isBindings {
					read += len(found.Items)
				}
				return err
			},
		}).Build()
	granted, err := (&Reconciler{Client: c}).listGranted(t.Context(), key)
	require.NoError(t, err)
	require.Len(t, granted, 1, "those in the namespace of the cluster go with the add-on, those of others stay")
	assert.Equal(t, "own-c1", granted[0].GetName())
	assert.Equal(t, 2, read, "what has the labels of the add-on on this cluster in other namespaces, and nothing else of 101")
}
