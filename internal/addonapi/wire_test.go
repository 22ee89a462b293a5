package addonapi

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// An add-on that is to be removed is deleted by a user and created again, or changed, before the request arrives.
func TestOnlyTheAddOnThatWasReadIsDeleted(t *testing.T) {
	scheme := runtime.NewScheme()
	require.NoError(t, addonv1alpha1.Install(scheme))
	var asked client.DeleteOptions
	hub := fake.NewClientBuilder().WithScheme(scheme).WithInterceptorFuncs(interceptor.Funcs{
		Delete: func(_ context.Context, _ client.WithWatch, _ client.Object, options ...client.DeleteOption) error {
			asked.ApplyOptions(options)
			return nil
		},
	}).Build()
	read := &addonv1beta1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{
		Namespace: "c1", Name: "hello", UID: "that", ResourceVersion: "7",
	}}
	require.NoError(t, Client{Client: hub}.DeleteAddOnVersion(t.Context(), read, "7"))
	require.NotNil(t, asked.Preconditions)
	assert.Equal(t, read.UID, *asked.Preconditions.UID)
	assert.Equal(t, read.ResourceVersion, *asked.Preconditions.ResourceVersion)
}
