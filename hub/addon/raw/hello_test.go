package raw_test

import (
	"context"
	"embed"
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"

	"github.com/spokelet/spokelet/hub/addon"
	"github.com/spokelet/spokelet/hub/addon/raw"
)

//go:embed testdata/hello testdata/hosted
var folders embed.FS

// everything is a configuration that sets all that the files use.
func everything() addonv1beta1.AddOnDeploymentConfigSpec {
	return addonv1beta1.AddOnDeploymentConfigSpec{
		AgentInstallNamespace: "agents",
		CustomizedVariables:   []addonv1beta1.CustomizedVariable{{Name: "LogLevel", Value: "4"}},
		NodePlacement: &addonv1beta1.NodePlacement{
			NodeSelector: map[string]string{"disk": "ssd"},
			Tolerations: []corev1.Toleration{{
				Key: "spot", Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule,
			}},
		},
		ProxyConfig: addonv1beta1.ProxyConfig{
			HTTPProxy: "http://proxy:3128", HTTPSProxy: "https://proxy:3129", NoProxy: "example.com",
			CABundle: []byte("bundle"),
		},
		Registries: []addonv1beta1.ImageMirror{{Source: "quay.io", Mirror: "m.example.com"}},
		ResourceRequirements: []addonv1beta1.ContainerResourceRequirements{{
			ContainerID: "deployments:*:agent",
			Resources:   corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": resource.MustParse("50m")}},
		}},
	}
}

// Shows: hub/library-raw, hub/library-examples
func TestAnAddOnOfFiles(t *testing.T) {
	templates, err := raw.New(folders, "testdata/hello")
	require.NoError(t, err)
	agent, err := addon.New(addon.Options{
		Name: "hello", Manifests: templates, KubeClient: &addon.KubeClient{},
		InstallNamespace: addon.AgentInstallNamespaceFromDeploymentConfig,
		Values: []addon.ValuesFunc{
			addon.GetAddOnDeploymentConfigValues(addon.ToAddOnDeploymentConfigValues),
			addon.GetAgentImageValues("Image", "quay.io/hello/agent:v1"),
		},
	})
	require.NoError(t, err)
	for file, configs := range map[string][]addonv1beta1.AddOnDeploymentConfigSpec{
		"default.yaml": nil, "configured.yaml": {everything()},
	} {
		t.Run(file, func(t *testing.T) {
			r := input(nil).Request
			r.AddOn.Name = "hello"
			for _, spec := range configs {
				configured(t, &r, spec)
			}
			rendering, err := agent.Render(t.Context(), r)
			require.NoError(t, err)
			assert.Equal(t, wanted(t, file), rendering.Objects)
		})
	}
}

// configured adds an AddOnDeploymentConfig to a request.
func configured(t *testing.T, r *addon.Request, spec addonv1beta1.AddOnDeploymentConfigSpec) {
	t.Helper()
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&addonv1beta1.AddOnDeploymentConfig{Spec: spec})
	require.NoError(t, err)
	chosen := addon.ChosenConfig{Object: &unstructured.Unstructured{Object: content}}
	chosen.Group, chosen.Resource = addonv1beta1.GroupName, "addondeploymentconfigs"
	r.Choice.Configs = append(r.Choice.Configs, chosen)
}

// wanted returns the objects of a file.
func wanted(t *testing.T, file string) []*unstructured.Unstructured {
	t.Helper()
	text, err := os.ReadFile("testdata/want/" + file)
	require.NoError(t, err)
	objects, err := addon.ParseYAML(string(text))
	require.NoError(t, err)
	return objects
}

// A Namespace on both sides, objects for the hosting cluster and objects for neither, and the resources of the last
// expression that matches.
//
// Shows: hub/library-examples, hub/library-hosted
func TestAnAddOnOfFilesThatMayBeHosted(t *testing.T) {
	templates, err := raw.New(folders, "testdata/hosted")
	require.NoError(t, err)
	image := func(context.Context, addon.Request) (addon.Values, error) {
		return addon.StructToValues(struct{ Image string }{"quay.io/weather/gauge:v1"}), nil
	}
	agent, err := addon.New(addon.Options{
		Name: "gauge", Manifests: templates, KubeClient: &addon.KubeClient{}, HostedMode: true,
		InstallNamespace: addon.AgentInstallNamespaceFromDeploymentConfig,
		Values: []addon.ValuesFunc{
			image, addon.GetAddOnDeploymentConfigValues(addon.ToAddOnDeploymentConfigValues),
			addon.GetValuesFromAddonAnnotation,
		},
	})
	require.NoError(t, err)
	r := input(nil).Request
	r.AddOn.Name = "gauge"
	rendering, err := agent.Render(t.Context(), r)
	require.NoError(t, err)
	assert.Equal(t, wanted(t, "hosted-default.yaml"), rendering.Objects)

	resources := func(limits, requests corev1.ResourceList) corev1.ResourceRequirements {
		return corev1.ResourceRequirements{Limits: limits, Requests: requests}
	}
	configured(t, &r, addonv1beta1.AddOnDeploymentConfigSpec{
		AgentInstallNamespace: "weather-c1",
		ResourceRequirements: []addonv1beta1.ContainerResourceRequirements{
			{ContainerID: "*:*:*", Resources: resources(corev1.ResourceList{"memory": resource.MustParse("1Gi")}, nil)},
			{ContainerID: "deployments:*:agent", Resources: resources(corev1.ResourceList{"memory": resource.MustParse("64Mi")},
				corev1.ResourceList{"cpu": resource.MustParse("50m"), "memory": resource.MustParse("32Mi")})},
			{ContainerID: "daemonsets:*:agent", Resources: resources(nil, nil)},
		},
	})
	r.AddOn.Annotations["addon.open-cluster-management.io/hosting-cluster-name"] = "h"
	rendering, err = agent.Render(t.Context(), r)
	require.NoError(t, err)
	assert.Equal(t, wanted(t, "hosted.yaml"), rendering.Objects)
}
