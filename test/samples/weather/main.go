// Command weather runs add-on weather on the hub. "weather rbac" prints the rights that it needs there, and "weather
// render" what it deploys, from files.
package main

import (
	"embed"
	"fmt"
	"os"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"

	"github.com/spokelet/spokelet/hub/addon"
	"github.com/spokelet/spokelet/hub/addon/helm"
	"github.com/spokelet/spokelet/hub/addon/manager"
)

// version is the commit that the program was built from; the linker sets it.
var version string

//go:embed all:chart
var files embed.FS

func main() { os.Exit(manager.Main(weather)) }

// weather describes the add-on.
func weather() (addon.Agent, error) {
	chart, err := helm.New(files, "chart", helm.Options{})
	if err != nil {
		return nil, fmt.Errorf("reading the chart of the add-on: %w", err)
	}
	return addon.New(addon.Options{
		Name:      "weather",
		Version:   version,
		Manifests: chart,
		Values: []addon.ValuesFunc{
			addon.GetAddOnDeploymentConfigValues(
				addon.ToAddOnNodePlacementValues,
				addon.ToAddOnProxyConfigValues,
				addon.ToAddOnResourceRequirementsValues,
				addon.ToAddOnCustomizedVariableValues,
			),
			addon.GetAgentImageValues("image", "registry.example.com/weather/agent:v1"),
			addon.GetValuesFromAddonAnnotation,
		},
		ConfigGVRs:       []schema.GroupVersionResource{addon.AddOnDeploymentConfigGVR()},
		InstallNamespace: addon.AgentInstallNamespaceFromDeploymentConfig,
		KubeClient: &addon.KubeClient{Roles: []addon.HubRole{
			{Name: "weather-reporter"},
			{Kind: addon.KindRole, Name: "weather-reader", Namespace: "weather-central"},
		}},
		CustomSigners: []addon.CustomSigner{{
			SignerName: "weather.example.com/stations",
			Subject:    station,
			CA:         types.NamespacedName{Namespace: "weather-central", Name: "weather-ca"},
		}},
		HealthProber: addon.NewAllDeploymentsProber(),
		HostedMode:   true,
	})
}

// station returns the subject of the certificate with which the agent of a cluster signs its reports.
func station(request addon.Request) addonv1beta1.Subject {
	return addonv1beta1.Subject{BaseSubject: addonv1beta1.BaseSubject{
		User: "station-" + request.Cluster.Name, Groups: []string{"stations"},
	}}
}
