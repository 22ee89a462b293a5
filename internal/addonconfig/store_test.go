package addonconfig

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/spokelet/spokelet/internal/addonconfig/fixture"
)

// Shows: hub/stored-again
func TestAStoredContentThatSomebodyDeletesIsStoredAgain(t *testing.T) {
	scheme := runtime.NewScheme()
	require.NoError(t, addonv1alpha1.Install(scheme))
	require.NoError(t, appsv1.AddToScheme(scheme))
	client := fake.NewClientBuilder().WithScheme(scheme).WithObjects(
		&addonv1alpha1.AddOnTemplate{ObjectMeta: metav1.ObjectMeta{Name: "t"}}).Build()
	s := &Store{Client: client, Home: "home"}
	template := fixture.Template("t")
	states, err := s.States(t.Context(), template)
	require.NoError(t, err)
	content := Chosen{ConfigGroupResource: template.ConfigGroupResource, ConfigSpecHash: *fixture.Hashed(template, states[template].Hash)}
	stored := func() []*appsv1.ControllerRevision {
		t.Helper()
		require.NoError(t, s.Keep(t.Context(), "hello", content))
		revisions, err := s.Revisions(t.Context(), "hello")
		require.NoError(t, err)
		return revisions
	}
	require.Len(t, stored(), 1)
	revisions := stored()
	require.Len(t, revisions, 1, "once")
	require.NoError(t, client.Delete(t.Context(), revisions[0]))
	assert.Len(t, stored(), 1, "a person tidied up")
}
