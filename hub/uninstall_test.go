package hub

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/spokelet/spokelet/internal/names"
)

func TestUninstallDeletesNoSecretWithoutAName(t *testing.T) {
	for secret, want := range map[string][]string{"": nil, "s": {"s"}} {
		var deleted []string
		record := interceptor.Funcs{
			Delete: func(_ context.Context, _ client.WithWatch, o client.Object, _ ...client.DeleteOption) error {
				deleted = append(deleted, o.GetName())
				return nil
			},
		}
		u := &uninstaller{
			config: Config{Namespace: "ns", WebhookSecret: secret}, out: t.Output(),
			client: interceptor.NewClient(fake.NewClientBuilder().WithScheme(runtime.NewScheme()).Build(), record),
		}
		require.NoError(t, u.removeCertificate(t.Context()))
		assert.Equal(t, want, deleted)
	}
}

// No other hub manager takes the finalizer off.
//
// Shows: policies/depends-uninstall
func TestUninstallLetsAddOnsGoOnWhichOthersDepend(t *testing.T) {
	scheme := runtime.NewScheme()
	require.NoError(t, apiextensionsv1.AddToScheme(scheme))
	require.NoError(t, addonv1beta1.Install(scheme))
	definition := &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: "managedclusteraddons.addon.open-cluster-management.io"},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{Versions: []apiextensionsv1.CustomResourceDefinitionVersion{
			{Name: "v1alpha1"}, {Name: "v1beta1", Storage: true},
		}},
	}
	var objects []client.Object
	for name, finalizers := range map[string][]string{
		"a": {"example.com/x", names.FinalizerDependents}, "b": {"example.com/x"},
	} {
		objects = append(objects, &addonv1beta1.ManagedClusterAddOn{
			ObjectMeta: metav1.ObjectMeta{Namespace: "c1", Name: name, Finalizers: finalizers},
		})
	}
	hub := fake.NewClientBuilder().WithScheme(scheme).WithObjects(append(objects, definition)...).Build()
	u := &uninstaller{out: t.Output(), client: hub}
	require.NoError(t, u.releaseAddOns(t.Context()))
	for _, name := range []string{"a", "b"} {
		var addOn addonv1beta1.ManagedClusterAddOn
		require.NoError(t, hub.Get(t.Context(), client.ObjectKey{Namespace: "c1", Name: name}, &addOn))
		assert.Equal(t, []string{"example.com/x"}, addOn.Finalizers)
	}
	require.NoError(t, (&uninstaller{out: t.Output(), client: fake.NewClientBuilder().WithScheme(scheme).Build()}).
		releaseAddOns(t.Context()), "a hub without add-ons")
}
