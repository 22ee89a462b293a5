package deploy

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// managements answers lists as an API server with one ClusterManagementAddOn, and counts them.
type managements struct {
	client.Reader

	version string
	spec    map[string]any
	failed  error
	lists   int
}

func (m *managements) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	m.lists++
	into, is := list.(*unstructured.UnstructuredList)
	if m.failed != nil || !is {
		return m.failed
	}
	one := unstructured.Unstructured{Object: map[string]any{"spec": m.spec}}
	one.SetName("a")
	one.SetResourceVersion(m.version)
	into.Items = []unstructured.Unstructured{one}
	return nil
}

func discovery(mode any) map[string]any {
	return map[string]any{"hostedModeAutoDiscovery": map[string]any{"mode": mode}}
}

// Shows: hub/hosting-field
func TestTheModeOfAnOwnerIsReadOnceForEachVersion(t *testing.T) {
	var m modes
	cma := &addonv1beta1.ClusterManagementAddOn{ObjectMeta: metav1.ObjectMeta{Name: "a", ResourceVersion: "1"}}
	live := &managements{version: "1", spec: discovery("Enable")}
	for range 3 {
		mode, err := m.of(t.Context(), live, cma)
		require.NoError(t, err)
		assert.Equal(t, "Enable", mode)
	}
	assert.Equal(t, 1, live.lists)

	// The API server is ahead of the cache: it is asked until the cache has what it said.
	live.version, live.spec = "3", discovery("Disable")
	cma.ResourceVersion = "2"
	for range 2 {
		mode, err := m.of(t.Context(), live, cma)
		require.NoError(t, err)
		assert.Equal(t, "Disable", mode)
	}
	assert.Equal(t, 3, live.lists)
	cma.ResourceVersion = "3"
	mode, err := m.of(t.Context(), live, cma)
	require.NoError(t, err)
	assert.Equal(t, "Disable", mode)
	assert.Equal(t, 3, live.lists)
}

func TestAModeThatIsNotThere(t *testing.T) {
	resource := schema.GroupResource{Group: addonv1beta1.GroupName, Resource: "clustermanagementaddons"}
	for sentence, tc := range map[string]struct {
		live *managements
		want string
	}{
		"no field":             {live: &managements{spec: map[string]any{}}},
		"a field without it":   {live: &managements{spec: map[string]any{"hostedModeAutoDiscovery": map[string]any{}}}},
		"one of another type":  {live: &managements{spec: discovery(true)}},
		"no v1beta1 is served": {live: &managements{failed: &meta.NoKindMatchError{}}},
		"nor any more":         {live: &managements{failed: apierrors.NewNotFound(resource, "")}},
		"it cannot be read":    {live: &managements{failed: errors.New("conversion webhook failed")}, want: "conversion webhook failed"},
		"or not by us":         {live: &managements{failed: apierrors.NewForbidden(resource, "", nil)}, want: "forbidden"},
	} {
		t.Run(sentence, func(t *testing.T) {
			var m modes
			tc.live.version = "1"
			cma := &addonv1beta1.ClusterManagementAddOn{ObjectMeta: metav1.ObjectMeta{Name: "a", ResourceVersion: "1"}}
			mode, err := m.of(t.Context(), tc.live, cma)
			assert.Empty(t, mode)
			if tc.want != "" {
				require.ErrorContains(t, err, tc.want)
				require.ErrorContains(t, err, "reading spec.hostedModeAutoDiscovery of ClusterManagementAddOn a")
				return
			}
			require.NoError(t, err)
			_, err = m.of(t.Context(), tc.live, cma)
			require.NoError(t, err)
			assert.Equal(t, 1, tc.live.lists, "it is not asked for again")
		})
	}
}
