// Command uptime runs add-on uptime on the hub. "uptime rbac" prints the rights that it needs there, and "uptime
// render" what it deploys, from files.
package main

import (
	"context"
	"embed"
	"fmt"
	"os"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/spokelet/spokelet/hub/addon"
	"github.com/spokelet/spokelet/hub/addon/manager"
	"github.com/spokelet/spokelet/hub/addon/raw"
)

// version is the commit that the program was built from; the linker sets it.
var version string

//go:embed manifests
var files embed.FS

func main() { os.Exit(manager.Main(uptime)) }

// uptime describes the add-on. Its agent does not use the hub, and so has no credentials for it.
func uptime() (addon.Agent, error) {
	manifests, err := raw.New(files, "manifests")
	if err != nil {
		return nil, fmt.Errorf("reading the manifests of the add-on: %w", err)
	}
	return addon.New(addon.Options{
		Name:      "uptime",
		Version:   version,
		Manifests: manifests,
		Values: []addon.ValuesFunc{
			func(context.Context, addon.Request) (addon.Values, error) {
				return addon.Values{"Interval": "20s"}, nil
			},
			addon.GetAddOnDeploymentConfigValues(addon.ToAddOnDeploymentConfigValues),
			addon.GetAgentImageValues("Image", "registry.example.com/uptime/agent:v1"),
			addon.GetValuesFromAddonAnnotation,
		},
		ConfigGVRs:       []schema.GroupVersionResource{addon.AddOnDeploymentConfigGVR()},
		InstallNamespace: addon.AgentInstallNamespaceFromDeploymentConfig,
		HealthProber:     addon.NewLeaseProber(),
	})
}
