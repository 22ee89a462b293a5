package ship_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"helm.sh/helm/v3/pkg/chart"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/spokelet/spokelet/test/ship/render"
)

// repository returns the path of a file or folder of the repository.
func repository(t *testing.T, path string) string {
	t.Helper()
	root, err := render.Root()
	require.NoError(t, err)
	return filepath.Join(root, path)
}

// read returns a file of the repository.
func read(t *testing.T, path string) []byte {
	t.Helper()
	content, err := os.ReadFile(repository(t, path))
	require.NoError(t, err)
	return content
}

func loadChart(t *testing.T) *chart.Chart {
	t.Helper()
	loaded, err := render.Load(repository(t, "manifests/chart"))
	require.NoError(t, err)
	return loaded
}

// kustomized returns the objects of a base or an overlay.
func kustomized(t *testing.T, folder string) []*unstructured.Unstructured {
	t.Helper()
	text, err := render.Kustomize(repository(t, folder))
	require.NoError(t, err)
	objects, err := render.Objects(text)
	require.NoError(t, err)
	return objects
}

// helmed returns the objects of the chart.
func helmed(t *testing.T, namespace string, values map[string]any) []*unstructured.Unstructured {
	t.Helper()
	text, err := render.Helm(loadChart(t), render.Release{Name: "spokelet", Namespace: namespace}, values)
	require.NoError(t, err)
	objects, err := render.Objects(text)
	require.NoError(t, err)
	return objects
}
