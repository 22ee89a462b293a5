package admission_test

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/test/sandbox"
)

// blocks finds the YAML of a page.
var blocks = regexp.MustCompile("(?s)```yaml\n(.*?)```")

func TestTheExamplesOfAPageAreAccepted(t *testing.T) {
	for _, page := range []string{"addons.md"} {
		t.Run(page, func(t *testing.T) {
			text, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "operations", page))
			require.NoError(t, err)
			var objects []*unstructured.Unstructured
			for _, block := range blocks.FindAllSubmatch(text, -1) {
				found, err := sandbox.Decode(block[1])
				require.NoError(t, err)
				objects = append(objects, found...)
			}
			require.NotEmpty(t, objects, "the page must have examples")
			for _, object := range objects {
				inNamespace(t, object.GetNamespace())
				require.NoError(t, plane.Client.Create(t.Context(), object, client.DryRunAll,
					client.FieldValidation(metav1.FieldValidationStrict)), "%s %s", object.GetKind(), object.GetName())
			}
		})
	}
}

// inNamespace sees that a namespace exists.
func inNamespace(t *testing.T, name string) {
	t.Helper()
	if name == "" {
		return
	}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	err := plane.Client.Get(t.Context(), client.ObjectKeyFromObject(namespace), namespace)
	if client.IgnoreNotFound(err) == nil && err != nil {
		err = plane.Client.Create(t.Context(), namespace)
	}
	require.NoError(t, err)
}
