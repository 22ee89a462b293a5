package template_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"github.com/spokelet/spokelet/hub/template"
)

// amplified renders a ConfigMap with a text for variables.
func amplified(text string, variables ...addonv1beta1.CustomizedVariable) (string, error) {
	compiled := template.Compile(&template.Template{Name: "x", Manifests: []map[string]any{{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "a", "namespace": "b"},
		"data": map[string]any{"k": text},
	}}})
	config := &addonv1beta1.AddOnDeploymentConfig{}
	config.Spec.CustomizedVariables = variables
	out, err := compiled.Render(template.Input{
		Config: config, AddOn: "x", Cluster: &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: "c"}},
	})
	if err != nil {
		return "", err
	}
	data, _ := out.Objects[0].Object["data"].(map[string]any)
	return fmt.Sprint(data["k"]), nil
}

// Shows: hub/values-bounded
func TestAShortTemplateWithALongValueIsRefusedBeforeItTakesTheMemory(t *testing.T) {
	long := addonv1beta1.CustomizedVariable{Name: "A", Value: strings.Repeat("x", 1024)}
	rendered, err := amplified(strings.Repeat("{{A}}", 4<<10), long)
	require.NoError(t, err)
	assert.Len(t, rendered, 4<<20)
	_, err = amplified(strings.Repeat("{{A}}", 4<<10+1), long)
	require.ErrorContains(t, err, "the values of variables take more than 4194304 bytes in the manifests for this cluster")
	assert.Equal(t, 1, strings.Count(err.Error(), "take more than"), "it is said once")
	text := strings.Repeat("{{A}}", 80_000) // as large as a template may be
	allocated := testing.Benchmark(func(b *testing.B) {
		b.Helper()
		for b.Loop() {
			_, err = amplified(text, long)
		}
	}).AllocedBytesPerOp()
	require.Error(t, err)
	assert.Less(t, allocated, int64(100<<20), "without a bound, it took some 300 MiB for the text alone")
}

// Shows: hub/values-bounded
func TestManyQuotedBracesAndManyVariablesTakeNoTime(t *testing.T) {
	rendered, err := amplified(strings.Repeat(`{{"{{"}}`, 100_000))
	require.NoError(t, err)
	assert.Equal(t, strings.Repeat("{{", 100_000), rendered)
	var many []addonv1beta1.CustomizedVariable
	for i := range 10_000 {
		many = append(many, addonv1beta1.CustomizedVariable{Name: fmt.Sprint("B", i), Value: fmt.Sprint(i)})
	}
	many = append(many, addonv1beta1.CustomizedVariable{Name: "B7", Value: "last"})
	rendered, err = amplified("{{B7}} {{B9999}} {{CLUSTER_NAME}}", many...)
	require.NoError(t, err)
	assert.Equal(t, "last 9999 c", rendered, "of two of a name, the last counts")
}
