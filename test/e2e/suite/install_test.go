package suite

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func TestTheManifestsRenderWithATagAndAName(t *testing.T) {
	manifests, err := filepath.Abs(filepath.Join("..", "..", "..", "manifests"))
	require.NoError(t, err)
	f := &Fleet{options: Options{Dir: t.TempDir(), Manifests: manifests}}
	hub, err := f.HubObjects("v9")
	require.NoError(t, err)
	agent, err := f.AgentObjects("cluster7", "v9")
	require.NoError(t, err)
	images := map[string]string{}
	for _, object := range append(hub, agent...) {
		if object.GetKind() != "Deployment" {
			continue
		}
		containers, _, err := unstructured.NestedSlice(object.Object, "spec", "template", "spec", "containers")
		require.NoError(t, err)
		container, _ := containers[0].(map[string]any)
		images[object.GetName()], _ = container["image"].(string)
		if object.GetName() == Agent {
			env, _ := container["env"].([]any)
			assert.Contains(t, env, map[string]any{"name": "CLUSTER_NAME", "value": "cluster7"})
		}
	}
	assert.Equal(t, map[string]string{HubManager: "spokelet/spokelet-hub:v9", Agent: "spokelet/spokelet:v9"}, images)
	assert.Equal(t, "CustomResourceDefinition", hub[0].GetKind())
}
