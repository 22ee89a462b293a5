package template

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
)

// TestNamespacesThatBecomeOneCostMemoryInProportion: 2,000 of them took 248 MiB for each cluster and pass, because the
// labels of all those before were copied for each.
func TestNamespacesThatBecomeOneCostMemoryInProportion(t *testing.T) {
	taken := func(n int) uint64 {
		of := &Template{Name: "x"}
		for i := range n {
			of.Manifests = append(of.Manifests, map[string]any{
				"apiVersion": "v1", "kind": "Namespace",
				"metadata": map[string]any{"name": "b", "labels": map[string]any{fmt.Sprint("l", i): "x", "shared": fmt.Sprint(i)}},
			})
		}
		of.Manifests = append(of.Manifests, map[string]any{
			"apiVersion": "apps/v1", "kind": "Deployment",
			"metadata": map[string]any{"name": "a", "namespace": "b"},
			"spec":     map[string]any{"template": map[string]any{"spec": map[string]any{"containers": []any{map[string]any{"name": "c", "image": "i"}}}}},
		})
		config := &addonv1beta1.AddOnDeploymentConfig{}
		config.Spec.AgentInstallNamespace = "other"
		in := Input{Config: config, AddOn: "x", Cluster: &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: "c"}}}
		c := Compile(of)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		result, err := c.Render(in)
		runtime.ReadMemStats(&after)
		require.NoError(t, err)
		labels := result.Objects[0].GetLabels()
		for i := range n {
			require.Contains(t, labels, fmt.Sprint("l", i))
		}
		assert.Equal(t, "0", labels["shared"], "the first one that has a label counts")
		return after.TotalAlloc - before.TotalAlloc
	}
	const few, more = 200, 8
	assert.Less(t, taken(few*more), 2*more*taken(few))
}
