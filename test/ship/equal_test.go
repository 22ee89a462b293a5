package ship_test

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/spokelet/spokelet/test/ship/generated"
	"github.com/spokelet/spokelet/test/ship/render"
)

// keep is the annotation with which Helm does not delete an object.
const keep = "helm.sh/resource-policy"

// definitions returns the CustomResourceDefinitions of a folder.
func definitions(t *testing.T, folder string) []*unstructured.Unstructured {
	t.Helper()
	entries, err := os.ReadDir(repository(t, folder))
	require.NoError(t, err)
	var all []*unstructured.Unstructured
	for _, entry := range entries {
		objects, err := render.Objects(read(t, filepath.Join(folder, entry.Name())))
		require.NoError(t, err)
		all = append(all, objects...)
	}
	return all
}

// byName returns the content of objects by kind, namespace and name.
func byName(t *testing.T, objects []*unstructured.Unstructured) map[string]any {
	t.Helper()
	named := map[string]any{}
	for _, object := range objects {
		name := object.GetKind() + " " + object.GetNamespace() + "/" + object.GetName()
		require.NotContains(t, named, name, "an object twice")
		named[name] = object.Object
	}
	return named
}

// TestTheChartAndKustomizeInstallTheSame: the release has every object of the base but the Namespace of the release,
// which Helm cannot own, and the one for works, and keeps the objects that others use.
func TestTheChartAndKustomizeInstallTheSame(t *testing.T) {
	for name, v := range variants() {
		t.Run(name, func(t *testing.T) {
			want := byName(t, v.byKustomize(t))
			own := "Namespace /" + v.namespace
			require.Contains(t, want, own)
			delete(want, own)
			delete(want, "Namespace /"+worksNamespace)
			objects := v.byHelm(t)
			for _, object := range objects {
				kept := object.GetAnnotations()[keep] == "keep"
				kind := object.GetKind()
				assert.Equal(t, kind == "Namespace" || kind == "CustomResourceDefinition", kept, "%s is kept", object.GetName())
				if kept {
					drop(object)
				}
			}
			got := byName(t, objects)
			for name, object := range want {
				assert.Equal(t, object, got[name], name)
				delete(got, name)
			}
			assert.Empty(t, got, "only the chart has these")
		})
	}
}

// drop removes the annotation that keeps an object.
func drop(object *unstructured.Unstructured) {
	annotations := object.GetAnnotations()
	delete(annotations, keep)
	object.SetAnnotations(annotations)
	if len(annotations) == 0 {
		unstructured.RemoveNestedField(object.Object, "metadata", "annotations")
	}
}

func TestWhatIsGeneratedIsUpToDate(t *testing.T) {
	files, err := generated.Files(repository(t, ""))
	require.NoError(t, err)
	for path, content := range files {
		assert.True(t, bytes.Equal(content, read(t, path)), "%s is not up to date: run make generate", path)
	}
	root := repository(t, "")
	require.NoError(t, filepath.WalkDir(filepath.Join(root, "manifests/chart/files"),
		func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() {
				return err
			}
			name, err := filepath.Rel(root, path)
			assert.Contains(t, files, name, "nobody writes this file")
			return err
		}))
}
