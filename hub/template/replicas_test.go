package template

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/spokelet/spokelet/hub/addon"
)

// Shows: hub/replicas
func TestDeploymentsGetTheReplicasOfTheConfiguration(t *testing.T) {
	workload := func(kind, name string) any {
		return map[string]any{
			"apiVersion": "apps/v1", "kind": kind, "metadata": map[string]any{"namespace": "ns", "name": name},
			"spec": map[string]any{"replicas": int64(1), "template": map[string]any{"spec": map[string]any{
				"containers": []any{map[string]any{"name": "main", "image": "i"}},
			}}},
		}
	}
	w := newWorld(t)
	u := templateObject("t", "a", "x")
	manifests := []any{
		workload("Deployment", "agent"), workload("Deployment", "{{CLUSTER_NAME}}-proxy"), workload("Deployment", "other"),
		workload("StatefulSet", "agent"),
	}
	require.NoError(t, unstructured.SetNestedSlice(u.Object, manifests, "spec", "agentSpec", "workload", "manifests"))
	w.use(t, u)
	rendered := func(configs ...any) []any {
		config := configObject("cfg", "config", "value")
		if configs != nil {
			require.NoError(t, unstructured.SetNestedSlice(config.Object, configs, "spec", "replicaConfigs"))
		}
		w.request.Choice.Configs[0] = chosen(t, config)
		rendering, err := w.agent.Render(t.Context(), w.request)
		require.NoError(t, err)
		var all []any
		for _, object := range rendering.Objects {
			replicas, _, err := unstructured.NestedFieldNoCopy(object.Object, "spec", "replicas")
			require.NoError(t, err)
			all = append(all, replicas)
		}
		return all
	}
	entry := func(id string, replicas int64) any { return map[string]any{"workloadID": id, "replicas": replicas} }
	assert.Equal(t, []any{int64(1), int64(1), int64(1), int64(1)}, rendered())
	assert.Equal(t, []any{int64(5), int64(0), int64(3), int64(1)}, rendered(
		entry("deployments:*", 3), entry("deployments:c1-proxy", 0), entry("*:age*", 5), entry("statefulsets:agent", 7),
	), "the last entry that matches a Deployment counts, and nothing else is touched")
	assert.Equal(t, []any{int64(1), int64(1), int64(1), int64(1)}, rendered(), "the template is not changed")

	config := configObject("cfg", "config", "value")
	require.NoError(t, unstructured.SetNestedSlice(config.Object, []any{entry("deployments:agent", -1)}, "spec", "replicaConfigs"))
	w.request.Choice.Configs[0] = chosen(t, config)
	_, err := w.agent.Render(t.Context(), w.request)
	assert.True(t, addon.IsInvalid(err))
	require.ErrorContains(t, err, "the least is 0")
}
