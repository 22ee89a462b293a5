package confighash_test

import (
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"

	"github.com/spokelet/spokelet/internal/confighash"
)

func TestSpecHashNamesWhatCannotBeEncoded(t *testing.T) {
	u := &unstructured.Unstructured{Object: map[string]any{
		"kind": "K", "metadata": map[string]any{"namespace": "ns", "name": "n"}, "spec": math.NaN(),
	}}
	_, err := confighash.SpecHash(u)
	require.Error(t, err)
	assert.Contains(t, err.Error(), "K ns/n")
}

func FuzzSpecHash(f *testing.F) {
	f.Add("k", "v")
	f.Add("status", "\u2028")
	f.Fuzz(func(t *testing.T, key, value string) {
		inner := func() map[string]any { return map[string]any{key: value, "z": "z"} }
		one, err := confighash.SpecHash(&unstructured.Unstructured{Object: map[string]any{
			"spec": inner(), "metadata": map[string]any{"resourceVersion": "1"},
		}})
		require.NoError(t, err)
		two, err := confighash.SpecHash(&unstructured.Unstructured{Object: map[string]any{
			"metadata": map[string]any{"resourceVersion": "2"}, "spec": inner(),
		}})
		require.NoError(t, err)
		assert.Equal(t, one, two)
		assert.Len(t, one, 64)
		assert.Equal(t, strings.ToLower(one), one)
	})
}

func TestNew(t *testing.T) {
	for _, resource := range []addonv1beta1.ConfigGroupResource{confighash.Template(), confighash.DeploymentConfig()} {
		u, known := confighash.New(resource)
		require.True(t, known)
		kind, known := confighash.Kind(resource)
		require.True(t, known)
		assert.Equal(t, kind, u.GroupVersionKind())
		assert.NotEmpty(t, kind.Version)
	}
	_, known := confighash.New(addonv1beta1.ConfigGroupResource{Resource: "configmaps"})
	assert.False(t, known)
}

func TestAHubMayServeConfigurationsInAnotherVersion(t *testing.T) {
	versions := confighash.Versions{Template: "v1beta1"}
	u, known := versions.New(confighash.Template())
	require.True(t, known)
	assert.Equal(t, "v1beta1", u.GroupVersionKind().Version)
	older, known := confighash.Versions{DeploymentConfig: "v1alpha1"}.Kind(confighash.DeploymentConfig())
	require.True(t, known)
	assert.Equal(t, "v1alpha1", older.Version)
	for _, resource := range []addonv1beta1.ConfigGroupResource{confighash.DeploymentConfig(), {Resource: "configmaps"}} {
		want, wantKnown := confighash.Kind(resource)
		got, gotKnown := versions.Kind(resource)
		assert.Equal(t, wantKnown, gotKnown)
		assert.Equal(t, want, got, "nothing else changes")
	}
}
