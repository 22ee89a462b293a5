package template_test

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"github.com/spokelet/spokelet/hub/addon"
	"github.com/spokelet/spokelet/hub/template"
)

// shape returns decoded JSON with each string, number and boolean replaced by "x", and with keys that have no variables.
func shape(value any) any {
	switch typed := value.(type) {
	case map[string]any:
		to := map[string]any{}
		for key, item := range typed {
			to[key] = shape(item)
		}
		return to
	case []any:
		to := make([]any, 0, len(typed))
		for _, item := range typed {
			to = append(to, shape(item))
		}
		return to
	case nil:
		return nil
	}
	return "x"
}

// fuzzed returns an input with a text at many places of two manifests, one with pods, and a value for variable A.
func fuzzed(text, key, value, namespace string) template.Input {
	return template.Input{
		AddOn: "a", Cluster: &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: "cluster1"}},
		Template: &template.Template{
			Name: "t", Registration: []addonv1alpha1.RegistrationSpec{{Type: addonv1alpha1.RegistrationTypeKubeClient}},
			Manifests: []map[string]any{
				{
					"apiVersion": "example.com/v1", "kind": "Thing", "metadata": map[string]any{"name": "thing", "namespace": "from"},
					"spec": map[string]any{"text": text, "list": []any{text, int64(1), nil, true}, "keys": map[string]any{key: text}},
				},
				{
					"apiVersion": "apps/v1", "kind": "Deployment", "metadata": map[string]any{"name": "d", "namespace": "from"},
					"spec": map[string]any{"replicas": text, "template": map[string]any{"spec": map[string]any{
						"containers": []any{map[string]any{
							"name": "c", "image": text, "ports": []any{map[string]any{"containerPort": text, "name": text}},
						}},
					}}},
				},
			},
		},
		Config: &addonv1beta1.AddOnDeploymentConfig{Spec: addonv1beta1.AddOnDeploymentConfigSpec{
			CustomizedVariables:   []addonv1beta1.CustomizedVariable{{Name: "A", Value: value}},
			AgentInstallNamespace: namespace,
		}},
	}
}

// FuzzRender: whatever is in a template and whatever the values are, rendering does not panic, gives the same result
// each time, changes neither the template nor its structure, and splices a value once.
//
// Shows: hub/structure
func FuzzRender(f *testing.F) {
	f.Add("{{A}}", "key", "3", "")
	f.Add("{{A}}", "{{A}}", `","injected":"`, "to")
	f.Add("{{{A}}}", "a.b/c", "\\\"\n\x00", "kube-system")
	f.Add("{{", "}}", "{{A}}", "")
	f.Add("{{B}}{{ A }}", "k", "{{A}}", "")
	f.Add(`{{"{{"}} A }}`, `{{"{{"}}`, "{{", "to")
	f.Add("{{A|integer}}", "{{A|integer}}", "9223372036854775808", "")
	f.Add("{{A|number}}", "k", "1e400", "")
	f.Add("{{A|boolean}}", "k", "true", "x")
	f.Add("1{{A}}", "text", "0", "")
	f.Fuzz(func(t *testing.T, text, key, value, namespace string) {
		in := fuzzed(text, key, value, namespace)
		before, err := json.Marshal(in.Template.Manifests)
		require.NoError(t, err)
		compiled := template.Compile(in.Template)
		result, err := compiled.Render(in)
		again, errAgain := compiled.Render(in)
		alone, errAlone := template.Render(in)
		after, _ := json.Marshal(in.Template.Manifests)
		assert.Equal(t, string(before), string(after), "a rendering changes no template")
		if err != nil {
			assert.True(t, addon.IsInvalid(err), "%v", err)
			require.EqualError(t, errAgain, err.Error())
			require.EqualError(t, errAlone, err.Error())
			return
		}
		require.NoError(t, errAgain)
		require.NoError(t, errAlone)
		assert.Equal(t, result, again, "the same input gives the same result")
		assert.Equal(t, result, alone)
		checkRendering(t, in, result, text, key, value)
	})
}

// checkRendering compares the first object of a rendering with its manifest.
func checkRendering(t *testing.T, in template.Input, result addon.Rendering, text, key, value string) {
	t.Helper()
	raw, err := json.Marshal(result.Objects[0].Object)
	require.NoError(t, err)
	var back map[string]any
	require.NoError(t, json.Unmarshal(raw, &back), "it is JSON")
	from, _ := in.Template.Manifests[0]["spec"].(map[string]any)
	to, _ := result.Objects[0].Object["spec"].(map[string]any)
	keys, _ := to["keys"].(map[string]any)
	require.Len(t, keys, 1)
	if !strings.Contains(key, "{{") {
		assert.Equal(t, shape(from), shape(to), "no value changes the structure")
	}
	for _, item := range keys {
		assert.Equal(t, to["text"], item)
	}
	got, isText := to["text"].(string)
	if isText && !strings.Contains(strings.ReplaceAll(text, "{{A}}", ""), "{{") {
		assert.Equal(t, strings.ReplaceAll(text, "{{A}}", value), got, "a value is spliced once")
	}
	if isText && utf8.ValidString(text) && !strings.Contains(text, "{{") {
		assert.Equal(t, text, got, "plain text stays")
	}
}
