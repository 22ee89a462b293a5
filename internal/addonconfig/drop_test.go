package addonconfig

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/spokelet/spokelet/internal/confighash"
)

// A tenant makes a configuration, names it, and deletes it, again and again.
func TestNothingIsKeptOfConfigurationsThatAreGone(t *testing.T) {
	scheme := runtime.NewScheme()
	require.NoError(t, addonv1alpha1.Install(scheme))
	hub := fake.NewClientBuilder().WithScheme(scheme).Build()
	s := &Store{Client: hub, Home: "home", Versions: confighash.Versions{DeploymentConfig: "v1alpha1"}}
	for i := range 3 {
		object := &addonv1alpha1.AddOnDeploymentConfig{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: fmt.Sprint("c", i)}}
		require.NoError(t, hub.Create(t.Context(), object))
		config := addonv1beta1.AddOnConfig{
			ConfigGroupResource: confighash.DeploymentConfig(),
			ConfigReferent:      addonv1beta1.ConfigReferent{Namespace: "ns", Name: object.Name},
		}
		states, err := s.States(t.Context(), config)
		require.NoError(t, err)
		require.NotEmpty(t, states[config].Hash)
		require.NotEmpty(t, s.hashes)

		event := &unstructured.Unstructured{}
		event.SetGroupVersionKind(addonv1alpha1.SchemeGroupVersion.WithKind("AddOnDeploymentConfig"))
		event.SetNamespace("ns")
		event.SetName(object.Name)
		s.Drop(ConfigKeyOf(event))
		assert.Empty(t, s.hashes)
	}
}
