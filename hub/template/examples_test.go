package template_test

import (
	"encoding/json"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"github.com/spokelet/spokelet/hub/addon"
	"github.com/spokelet/spokelet/hub/template"
	"github.com/spokelet/spokelet/internal/confighash"
)

// examples returns the objects of the page for authors by kind and name.
func examples(t *testing.T) map[string]*unstructured.Unstructured {
	t.Helper()
	page, err := os.ReadFile("../../docs/operations/templates.md")
	require.NoError(t, err)
	found := map[string]*unstructured.Unstructured{}
	for _, block := range regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllStringSubmatch(string(page), -1) {
		for text := range strings.SplitSeq(block[1], "\n---\n") {
			u := &unstructured.Unstructured{Object: object(t, text)}
			found[u.GetKind()+" "+u.GetName()] = u
		}
	}
	return found
}

// renderExample renders the template of the page for authors with one of its configurations, and returns the objects by
// kind.
func renderExample(t *testing.T, config string) (template.Input, addon.Rendering, map[string]*unstructured.Unstructured) {
	t.Helper()
	all := examples(t)
	require.Contains(t, all, "AddOnTemplate weather-v1")
	require.Contains(t, all, "AddOnDeploymentConfig "+config)
	in := template.Input{
		AddOn: "weather", Cluster: &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: "cluster1"}},
	}
	var err error
	in.Template, err = template.ReadTemplate(all["AddOnTemplate weather-v1"])
	require.NoError(t, err)
	in.Config, _, err = template.ReadConfig(all["AddOnDeploymentConfig "+config])
	require.NoError(t, err)
	require.NoError(t, template.CheckTrust(in.Template, "cluster1", "weather", "home"))
	result, err := template.Render(in)
	require.NoError(t, err)
	byKind := map[string]*unstructured.Unstructured{}
	for _, u := range result.Objects {
		byKind[u.GetKind()] = u
	}
	return in, result, byKind
}

func TestTheTemplateOfThePageForAuthors(t *testing.T) {
	in, result, objects := renderExample(t, "weather")
	require.Len(t, result.Objects, 7)
	deployment := objects["Deployment"]
	assert.Equal(t, int64(2), at(t, deployment, "spec", "replicas"))
	assert.Equal(t, "registry.example.com/weather/agent:v1.4.0", container(t, deployment, "image"))
	assert.Equal(t, []any{
		"--station=cluster1", "--hub-kubeconfig=/managed/hub-kubeconfig/kubeconfig", "--verbosity=1",
	}, container(t, deployment, "args"))
	assert.Equal(t, int64(8080), container(t, deployment, "livenessProbe", "httpGet", "port"))
	assert.Contains(t, pod(t, deployment, "volumes"), map[string]any{
		"name": "cert-weather-example-com-stations", "secret": map[string]any{
			"secretName": "weather-weather.example.com-stations-client-cert",
		},
	})
	assert.Contains(t, at(t, objects["ConfigMap"], "data", "alerts.yaml"), "No weather at {{ $labels.station }}")
	assert.Equal(t, map[string]any{"intervalSeconds": int64(60), "online": true}, objects["Station"].Object["spec"])
	assert.Equal(t, "weather/cluster1", objects["Station"].GetNamespace()+"/"+objects["Station"].GetName())
	assert.Contains(t, objects["PersistentVolumeClaim"].GetAnnotations(), "addon.open-cluster-management.io/deletion-orphan")
	assert.Contains(t, objects["Job"].GetAnnotations(), "addon.open-cluster-management.io/addon-pre-delete")
	assert.Equal(t, []any{map[string]any{"name": "hub-kubeconfig", "mountPath": "/managed/hub-kubeconfig"},
		map[string]any{"name": "cert-weather-example-com-stations", "mountPath": "/managed/weather.example.com-stations"},
	}, container(t, objects["Job"], "volumeMounts"))
	assert.Equal(t, "cluster1", result.ManifestConfigs[0].ResourceIdentifier.Name)
	assert.Equal(t, "weather", result.ManifestConfigs[0].ResourceIdentifier.Namespace)

	namespace, err := template.Namespace(in)
	require.NoError(t, err)
	assert.Equal(t, "weather", namespace)
	registrations, err := template.Registrations(in.Template, "cluster1", "weather")
	require.NoError(t, err)
	require.Len(t, registrations, 2)
	assert.Equal(t, "station", registrations[1].CustomSigner.Subject.User)
	permissions, err := template.Permissions(in.Template, "cluster1", "weather")
	require.NoError(t, err)
	assert.Len(t, permissions, 2)
}

// Shows: hub/per-cluster
func TestAConfigurationOfItsOwnForACluster(t *testing.T) {
	in, result, objects := renderExample(t, "weather-tests")
	assert.Equal(t, int64(1), at(t, objects["Deployment"], "spec", "replicas"))
	assert.Equal(t, "health", container(t, objects["Deployment"], "livenessProbe", "httpGet", "port"))
	assert.Equal(t, false, at(t, objects["Station"], "spec", "online"))
	for _, u := range result.Objects {
		if u.GetKind() != "ClusterRoleBinding" {
			assert.Equal(t, "weather-tests", u.GetNamespace(), u.GetKind())
		}
	}
	assert.Equal(t, "weather-tests", at(t, objects["ClusterRoleBinding"], "subjects", 0, "namespace"))
	assert.Equal(t, "weather-tests", result.ManifestConfigs[0].ResourceIdentifier.Namespace)
	namespace, err := template.Namespace(in)
	require.NoError(t, err)
	assert.Equal(t, "weather-tests", namespace)
}

func TestTheSettingsOfAClusterReachWorkloadsAndHooks(t *testing.T) {
	_, _, objects := renderExample(t, "weather-behind-proxy")
	for _, kind := range []string{"Deployment", "Job"} {
		u := objects[kind]
		assert.Equal(t, "mirror.internal/weather/agent:v1.4.0", container(t, u, "image"), kind)
		assert.Equal(t, map[string]any{"node-role.kubernetes.io/infra": ""}, pod(t, u, "nodeSelector"), kind)
		assert.Len(t, pod(t, u, "tolerations"), 1, kind)
		assert.Contains(t, container(t, u, "env"), env("https_proxy", "https://proxy.internal:3128"), kind)
		assert.Contains(t, container(t, u, "env"), env("CA_BUNDLE_FILE_PATH", "/managed/proxy-ca/ca-bundle.crt"), kind)
	}
	assert.Equal(t, map[string]any{
		"requests": map[string]any{"memory": "64Mi"}, "limits": map[string]any{"memory": "128Mi"},
	}, container(t, objects["Deployment"], "resources"))
}

func specHash(t *testing.T, u *unstructured.Unstructured) string {
	t.Helper()
	hash, err := confighash.SpecHash(u)
	require.NoError(t, err)
	return hash
}

// Shows: hub/api-versions-of-templates
func TestBothVersionsOfATemplateAreOne(t *testing.T) {
	old := examples(t)["AddOnTemplate weather-v1"]
	raw, err := json.Marshal(old.Object)
	require.NoError(t, err)
	next := &unstructured.Unstructured{}
	require.NoError(t, next.UnmarshalJSON(raw))
	next.SetAPIVersion("addon.open-cluster-management.io/v1beta1")
	one, err := template.ReadTemplate(old)
	require.NoError(t, err)
	two, err := template.ReadTemplate(next)
	require.NoError(t, err)
	assert.Equal(t, one, two)
	assert.Equal(t, specHash(t, old), specHash(t, next))
}
