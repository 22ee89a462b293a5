package template_test

import (
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"github.com/spokelet/spokelet/hub/template"
)

// Each variable without a value is a problem with the path to it, and a key may be long: a template of 1.4 MB (a key of
// 600 KB, `{{a}}` 160,000 times) would take a hundred gigabytes. The one here has 45 KB.
func TestTheProblemsOfATemplateTakeLittleMemory(t *testing.T) {
	const key, variables = 20_000, 5_000
	of := &template.Template{Name: "x", AddOn: "x", Manifests: []map[string]any{{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "x", "namespace": "x"},
		"data": map[string]any{strings.Repeat("k", key): strings.Repeat("{{a}}", variables)},
	}}}
	c := template.Compile(of)
	in := template.Input{AddOn: "x", Cluster: &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: "c"}}}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err := c.Render(in)
	runtime.ReadMemStats(&after)
	require.ErrorContains(t, err, "variable a has no value")
	var problems *template.ProblemsError
	require.ErrorAs(t, err, &problems)
	assert.Len(t, problems.Problems, 20)
	assert.Equal(t, variables, problems.All)
	assert.Less(t, len(err.Error()), 30_000)
	assert.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(16<<20))
}
