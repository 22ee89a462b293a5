package helm_test

import (
	"context"
	"embed"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"

	"github.com/spokelet/spokelet/hub/addon"
	"github.com/spokelet/spokelet/hub/addon/helm"
)

//go:embed all:testdata/station
var station embed.FS

// stationValues are the default values of the program: they differ from those of the chart by their types.
func stationValues(_ context.Context, request addon.Request) (addon.Values, error) {
	type global struct {
		ImagePullPolicy string            `json:"imagePullPolicy,omitempty"`
		Images          map[string]string `json:"images,omitempty"`
	}
	return addon.JSONStructToValues(struct {
		ClusterNamespace string `json:"clusterNamespace,omitempty"`
		Global           global `json:"global"`
	}{request.Cluster.Name, global{"IfNotPresent", map[string]string{"station": "quay.io/weather/station:v2"}}})
}

// fromConfigMaps are values from a kind of configuration that the author reads.
func fromConfigMaps(_ context.Context, request addon.Request) (addon.Values, error) {
	merged := addon.Values{}
	for _, config := range request.Choice.Configs {
		if config.Resource != "configmaps" {
			continue
		}
		policy, found, err := unstructured.NestedString(config.Object.Object, "data", "imagePullPolicy")
		if err != nil || !found {
			return nil, &addon.InvalidError{Message: fmt.Sprintf("ConfigMap %s/%s has no imagePullPolicy", config.Namespace,
				config.Name)}
		}
		merged = addon.MergeValues(merged, addon.Values{"global": map[string]any{"imagePullPolicy": policy}})
	}
	return merged, nil
}

// stationAgent is the add-on as its program builds it.
func stationAgent(t *testing.T, trim bool) addon.Agent {
	t.Helper()
	chart, err := helm.New(station, "testdata/station", helm.Options{})
	require.NoError(t, err)
	agent, err := addon.New(addon.Options{
		Name: "weather", Manifests: chart, KubeClient: &addon.KubeClient{Agent: "station"}, HostedMode: true,
		TrimCRDDescription: trim, InstallNamespace: addon.AgentInstallNamespaceFromDeploymentConfig,
		Values: []addon.ValuesFunc{
			stationValues, fromConfigMaps,
			addon.GetAgentImageValues("global.images.station", "quay.io/weather/station:v2"),
			addon.GetAddOnDeploymentConfigValues(addon.ToAddOnNodePlacementValues, addon.ToAddOnProxyConfigValues,
				addon.ToAddOnCustomizedVariableValues, addon.ToAddOnResourceRequirementsValues),
			addon.GetValuesFromAddonAnnotation,
		},
		ConfigGVRs: []schema.GroupVersionResource{
			addon.AddOnDeploymentConfigGVR(), {Version: "v1", Resource: "configmaps"},
		},
		HealthProber: addon.NewAllDeploymentsProber(),
	})
	require.NoError(t, err)
	return agent
}

func stationRequest() addon.Request {
	r := request()
	r.AddOn.Name, r.Cluster = "weather", cluster("c1", "v1.31.2+vendor.1")
	return r
}

// Library charts, dependencies with values of their own, a schema, definitions, values that are null, the resources of
// the last expression that matches, and an agent that outlives its add-on: all in the way of charts of today.
//
// Shows: hub/library-examples, hub/library-helm
func TestAChartWithAllFeaturesOnAManagedCluster(t *testing.T) {
	rendering, err := stationAgent(t, false).Render(t.Context(), stationRequest())
	require.NoError(t, err)
	assert.Equal(t, wanted(t, "station-default.yaml"), rendering.Objects)
}

// Shows: hub/library-examples, hub/library-helm
func TestAChartWithAllFeaturesInHostedModeWithAllSettings(t *testing.T) {
	r := stationRequest()
	r.Hosting = cluster("h", "v1.30.1")
	r.Cluster.Annotations = map[string]string{"open-cluster-management.io/image-registries": `{"registries":[` +
		`{"source":"quay.io","mirror":"other.example.com"},{"source":"quay.io/weather","mirror":"mirror.example.com/weather/"}]}`}
	r.AddOn.Annotations["addon.open-cluster-management.io/hosting-cluster-name"] = "h"
	r.AddOn.Annotations["addon.open-cluster-management.io/values"] = `{"nameOverride": "north", "installMode": "Default",
		"tags": {"probes": false}, "global": {"imagePullSecret": "pull"}}`
	list := func(name corev1.ResourceName, text string) corev1.ResourceList {
		return corev1.ResourceList{name: resource.MustParse(text)}
	}
	configured(t, &r, addonv1beta1.AddOnDeploymentConfigSpec{
		AgentInstallNamespace: "weather-c1",
		CustomizedVariables: []addonv1beta1.CustomizedVariable{
			{Name: "managedKubeConfigSecret", Value: "external-managed-kubeconfig"}, {Name: "nameOverride", Value: "south"},
		},
		NodePlacement: &addonv1beta1.NodePlacement{
			NodeSelector: map[string]string{"kubernetes.io/os": "linux"},
			Tolerations: []corev1.Toleration{{
				Key: "node-role.kubernetes.io/infra", Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule,
			}},
		},
		ProxyConfig: addonv1beta1.ProxyConfig{HTTPSProxy: "https://proxy.example.com:3129"},
		Registries:  []addonv1beta1.ImageMirror{{Source: "docker.io", Mirror: "mirror.example.com"}},
		ResourceRequirements: []addonv1beta1.ContainerResourceRequirements{
			{ContainerID: "*:*:*", Resources: corev1.ResourceRequirements{Requests: list("memory", "16Mi")}},
			{ContainerID: "deployments:*:agent", Resources: corev1.ResourceRequirements{
				Limits: list("memory", "64Mi"), Requests: list("cpu", "50m"),
			}},
		},
	})
	settings := addon.ChosenConfig{Object: &unstructured.Unstructured{Object: map[string]any{
		"data": map[string]any{"imagePullPolicy": "Always"},
	}}}
	settings.Resource = "configmaps"
	r.Choice.Configs = append(r.Choice.Configs, settings)
	rendering, err := stationAgent(t, true).Render(t.Context(), r)
	require.NoError(t, err)
	assert.Equal(t, wanted(t, "station-hosted.yaml"), rendering.Objects)
}

// Shows: hub/library-helm-errors
func TestValuesAgainstTheSchemaNameTheirPlace(t *testing.T) {
	tests := map[string]struct{ values, says string }{
		"a number is no text": {`{"global": {"nodeSelector": {"zone": 1}}}`, "/global/nodeSelector/zone"},
		"a value is one of a list": {`{"global": {"imagePullPolicy": "Sometimes"}}`,
			"/global/imagePullPolicy"},
		"a value of a dependency is under its limit": {`{"probe": {"interval": 1}}`, "/probe/interval"},
		"a map is no text":                           {`{"global": "none"}`, "/global"},
	}
	for sentence, tc := range tests {
		t.Run(sentence, func(t *testing.T) {
			r := stationRequest()
			r.AddOn.Annotations["addon.open-cluster-management.io/values"] = tc.values
			_, err := stationAgent(t, false).Render(t.Context(), r)
			require.ErrorContains(t, err, "add-on weather on cluster c1: chart station cannot be rendered: values don't meet")
			require.ErrorContains(t, err, tc.says)
			assert.True(t, addon.IsInvalid(err))
		})
	}
}
