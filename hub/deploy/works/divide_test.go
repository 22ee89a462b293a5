package works

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/spokelet/spokelet/hub/addon"
	"github.com/spokelet/spokelet/internal/names"
)

func placed(name, annotation, label string) *unstructured.Unstructured {
	u := configMap(name, 1)
	if annotation != "" {
		u.SetAnnotations(map[string]string{names.AnnotationHostedLocation: annotation})
	}
	if label != "" {
		u.SetLabels(map[string]string{names.AnnotationHostedLocation: label})
	}
	return u
}

func marked(kind, name, mark string, bytes int) *unstructured.Unstructured {
	u := configMap(name, bytes)
	u.SetKind(kind)
	u.SetLabels(map[string]string{mark: ""})
	return u
}

func namesOf(manifests []Manifest) string {
	var all []string
	for _, m := range manifests {
		all = append(all, m.Name)
	}
	return strings.Join(all, ",")
}

// Shows: hub/hosted-location
func TestObjectsAreDividedBySideAndPurpose(t *testing.T) {
	objects := []*unstructured.Unstructured{
		configMap("plain", 1), placed("managed", "managed", ""), placed("hosting", "hosting", ""),
		placed("labelled", "", "hosting"), placed("annotated", "managed", "hosting"), placed("none", "none", "hosting"),
		marked("Job", "job", names.AnnotationPreDelete, 1), marked("Pod", "pod", names.LabelPreDeleteOld, 1),
		marked("Secret", "no-hook", names.AnnotationPreDelete, 1),
	}
	there := marked("Job", "there", names.AnnotationPreDelete, 1)
	there.SetAnnotations(map[string]string{names.AnnotationHostedLocation: "hosting"})
	objects = append(objects, there)
	d, err := Divide(objects, true)
	require.NoError(t, err)
	assert.Equal(t, "plain,managed,annotated,no-hook", namesOf(d.Deploy[Managed]))
	assert.Equal(t, "hosting,labelled", namesOf(d.Deploy[Hosting]))
	assert.Equal(t, "job,pod", namesOf(d.Hooks[Managed]))
	assert.Equal(t, "there", namesOf(d.Hooks[Hosting]))

	d, err = Divide(append(objects, placed("odd", "moon", "")), false)
	require.NoError(t, err, "in default mode the place has no meaning")
	assert.Equal(t, "plain,managed,hosting,labelled,annotated,none,no-hook,odd", namesOf(d.Deploy[Managed]))
	assert.Equal(t, "job,pod,there", namesOf(d.Hooks[Managed]))
	assert.Empty(t, d.Deploy[Hosting])
	assert.Empty(t, d.Hooks[Hosting])
}

func TestObjectsThatCannotBeDivided(t *testing.T) {
	_, err := Divide([]*unstructured.Unstructured{
		placed("odd", "moon", "hosting"), placed("empty", "", ""), placed("large", "", ""),
		marked("Job", "one", names.AnnotationPreDelete, 300_000), marked("Job", "two", names.AnnotationPreDelete, 300_000),
	}, true)
	require.Error(t, err)
	assert.True(t, addon.IsInvalid(err))
	require.ErrorContains(t, err, `ConfigMap ns/odd has location "moon"`)
	require.ErrorContains(t, err, "the pre-delete hooks for the managed cluster have")
	assert.NotContains(t, err.Error(), "ns/empty")

	empty := placed("empty", "", "")
	empty.SetAnnotations(map[string]string{names.AnnotationHostedLocation: ""})
	_, err = Divide([]*unstructured.Unstructured{empty}, true)
	assert.ErrorContains(t, err, `ConfigMap ns/empty has location ""`)
}
