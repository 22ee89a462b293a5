package definition

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

func TestADefinitionThatChangesWhileItIsReadGetsTheWebhookAllTheSame(t *testing.T) {
	scheme := runtime.NewScheme()
	require.NoError(t, apiextensionsv1.AddToScheme(scheme))
	definition := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: "things.example.com"}}
	refused := 0
	hub := interceptor.NewClient(fake.NewClientBuilder().WithScheme(scheme).WithObjects(definition).Build(),
		interceptor.Funcs{Patch: func(
			ctx context.Context, c client.WithWatch, o client.Object, patch client.Patch, options ...client.PatchOption,
		) error {
			if refused++; refused == 1 {
				return apierrors.NewConflict(schema.GroupResource{Resource: "customresourcedefinitions"}, o.GetName(), nil)
			}
			return c.Patch(ctx, o, patch, options...)
		}})
	ours := &apiextensionsv1.WebhookClientConfig{Service: &apiextensionsv1.ServiceReference{Namespace: "ns", Name: "webhook"}}
	have, err := (&Installer{Client: hub}).announced(t.Context(), definition.Name, ours)
	require.NoError(t, err)
	assert.True(t, SameWebhook(have.Spec.Conversion, ours))
	assert.Equal(t, 2, refused)
}
