package raw_test

import (
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

//go:embed testdata/hello
var hello embed.FS

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

// Shows: hub/library-raw
func TestAnAddOnOfFiles(t *testing.T) {
	templates, err := raw.New(hello, "testdata/hello")
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
				content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&addonv1beta1.AddOnDeploymentConfig{Spec: spec})
				require.NoError(t, err)
				chosen := addon.ChosenConfig{Object: &unstructured.Unstructured{Object: content}}
				chosen.Group, chosen.Resource = addonv1beta1.GroupName, "addondeploymentconfigs"
				r.Choice.Configs = append(r.Choice.Configs, chosen)
			}
			rendering, err := agent.Render(t.Context(), r)
			require.NoError(t, err)
			text, err := os.ReadFile("testdata/want/" + file)
			require.NoError(t, err)
			want, err := addon.ParseYAML(string(text))
			require.NoError(t, err)
			assert.Equal(t, want, rendering.Objects)
		})
	}
}
