package deploy

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/internal/names"
)

// carriedMode is what the conversion writes into the annotation.
const carriedMode = `{"v1beta1":[{"path":["spec","hostedModeAutoDiscovery"],"value":{"mode":"Enable"}}]}`

// renaming answers as an API server that converts by renaming the version, until the webhook is there. Then the field
// is in its place. The stored object, and so its version, is the same.
type renaming struct {
	client.Reader

	converts bool
}

func (r *renaming) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	one := unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{}}}
	if r.converts {
		one.Object["spec"] = discovery("Enable")
	} else {
		one.SetAnnotations(map[string]string{
			names.AnnotationCarried: carriedMode,
		})
	}
	one.SetName("a")
	one.SetResourceVersion("1")
	if into, is := list.(*unstructured.UnstructuredList); is {
		into.Items = []unstructured.Unstructured{one}
	}
	return nil
}

// A hub manager that starts, or one whose definitions were just applied again, may ask for the mode while the API
// server converts by renaming: the field waits in its annotation then, and no write of the object says when it is back.
func TestAModeThatIsStillInItsAnnotationIsNotTakenAsNone(t *testing.T) {
	var m modes
	live := &renaming{}
	cma := &addonv1beta1.ClusterManagementAddOn{ObjectMeta: metav1.ObjectMeta{
		Name: "a", ResourceVersion: "1",
		Annotations: map[string]string{names.AnnotationCarried: carriedMode},
	}}
	mode, err := m.of(t.Context(), live, cma)
	assert.True(t, err != nil || mode == "Enable", "it is not unset: the add-on would be deployed on its own cluster")
	live.converts = true
	mode, err = m.of(t.Context(), live, cma)
	require.NoError(t, err)
	assert.Equal(t, "Enable", mode, "nothing starts another question")
}
