package helm_test

import (
	"embed"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/spokelet/spokelet/hub/addon"
	"github.com/spokelet/spokelet/hub/addon/helm"
)

//go:embed all:testdata/hello
var files embed.FS

// An add-on with a chart, whose values come from AddOnDeploymentConfigs, image mirrors and an annotation.
func ExampleNew() {
	chart, err := helm.New(files, "testdata/hello", helm.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	agent, err := addon.New(addon.Options{
		Name:      "hello",
		Manifests: chart,
		Values: []addon.ValuesFunc{
			addon.GetAddOnDeploymentConfigValues(addon.ToAddOnNodePlacementValues, addon.ToAddOnProxyConfigValues),
			addon.GetAgentImageValues("image", "quay.io/hello/agent:v1"),
			addon.GetValuesFromAddonAnnotation,
		},
		ConfigGVRs:       []schema.GroupVersionResource{addon.AddOnDeploymentConfigGVR()},
		InstallNamespace: addon.AgentInstallNamespaceFromDeploymentConfig,
		KubeClient:       &addon.KubeClient{},
		HealthProber:     addon.NewAllDeploymentsProber(),
		HostedMode:       true,
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(agent.About().Name)
	// Output: hello
}
