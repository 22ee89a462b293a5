package main

import (
	"bytes"
	"context"
	"embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// apiModule is where the API types and their CustomResourceDefinitions come from.
const apiModule = "open-cluster-management.io/api"

// sources maps what we ship, below manifests/crds, to files of the API module. ClusterManagementAddOn,
// ManagedClusterAddOn and AddOnDeploymentConfig come from the v1beta1 folder, whose files serve both versions.
func sources() map[string]string {
	return map[string]string{
		deploymentConfigs: "addon/v1beta1/0000_02_addon.open-cluster-management.io_" +
			"addondeploymentconfigs.crd.yaml",
		templates: "addon/v1alpha1/0000_03_addon.open-cluster-management.io_" +
			"addontemplates.crd.yaml",
		managements: "addon/v1beta1/0000_00_addon.open-cluster-management.io_" +
			"clustermanagementaddons.crd.yaml",
		"hub/managedclusteraddons.yaml": "addon/v1beta1/0000_01_addon.open-cluster-management.io_" +
			"managedclusteraddons.crd.yaml",
		"hub/managedclusters.yaml": "cluster/v1/0000_00_clusters.open-cluster-management.io_" +
			"managedclusters.crd.yaml",
		"hub/managedclustersetbindings.yaml": "cluster/v1beta2/0000_01_clusters.open-cluster-management.io_" +
			"managedclustersetbindings.crd.yaml",
		"hub/managedclustersets.yaml": "cluster/v1beta2/0000_00_clusters.open-cluster-management.io_" +
			"managedclustersets.crd.yaml",
		"hub/manifestworks.yaml": "work/v1/0000_00_work.open-cluster-management.io_" +
			"manifestworks.crd.yaml",
		"hub/placementdecisions.yaml": "cluster/v1beta1/0000_03_clusters.open-cluster-management.io_" +
			"placementdecisions.crd.yaml",
		"hub/placements.yaml": "cluster/v1beta1/0000_02_clusters.open-cluster-management.io_" +
			"placements.crd.yaml",
		"spoke/appliedmanifestworks.yaml": "work/v1/0000_01_work.open-cluster-management.io_" +
			"appliedmanifestworks.crd.yaml",
		"spoke/clusterclaims.yaml": "cluster/v1alpha1/0000_02_clusters.open-cluster-management.io_" +
			"clusterclaims.crd.yaml",
	}
}

// moduleDir returns the folder of the API module in the module cache.
func moduleDir(ctx context.Context) (string, error) {
	out, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", apiModule).Output()
	if err != nil {
		return "", fmt.Errorf("finding the folder of module %s: %w", apiModule, err)
	}
	dir := strings.TrimSpace(string(out))
	if dir == "" {
		return "", fmt.Errorf("module %s is not in the module cache: run go mod download", apiModule)
	}
	return dir, nil
}

// templates is the definition of AddOnTemplates, of which the API module has v1alpha1 only.
const templates = "hub/addontemplates.yaml"

// withBeta returns the definition of AddOnTemplates with version v1beta1 besides v1alpha1: the same fields, served and
// not stored (docs/adr/0004-versions-of-the-add-on-api.md). The rest stays as it is, byte for byte.
func withBeta(raw []byte) ([]byte, error) {
	const list, end, name, stored = "  versions:\n", "status:\n", "    name: v1alpha1\n", "    storage: true\n"
	before, rest, found := bytes.Cut(raw, []byte(list))
	alpha, status, ended := bytes.Cut(rest, []byte("\n"+end))
	versions := bytes.Count(alpha, []byte("\n    storage: "))
	one := versions == 1 && bytes.Contains(alpha, []byte(name)) && bytes.Contains(alpha, []byte(stored))
	if !found || !ended || !one {
		return nil, errors.New("the definition does not have one version, v1alpha1, which is stored")
	}
	beta := bytes.Replace(alpha, []byte(name), []byte("    name: v1beta1\n"), 1)
	beta = bytes.Replace(beta, []byte(stored), []byte("    storage: false\n"), 1)
	return slices.Concat(before, []byte(list), alpha, []byte("\n"), beta, []byte("\n"+end), status), nil
}

// allNamespaces is the schema of a permission that OCM proposes and the API module does not have.
const allNamespaces = `                              allNamespaces:
                                description: |-
                                  allNamespaces names the role of a permission of type AllNamespaces.
                                  It is bound by a ClusterRoleBinding, with the consent of an administrator.
                                properties:
                                  clusterRoleName:
                                    description: clusterRoleName is the name of the ClusterRole.
                                    minLength: 1
                                    type: string
                                required:
                                - clusterRoleName
                                type: object
`

// withPermissions returns the definition of AddOnTemplates in one version with permissions of type AllNamespaces.
func withPermissions(raw []byte) ([]byte, error) {
	const next, kinds = "                              currentCluster:\n",
		"                                - CurrentCluster\n                                - SingleNamespace\n"
	if bytes.Contains(raw, []byte("llNamespaces")) || bytes.Count(raw, []byte(next)) != 1 ||
		bytes.Count(raw, []byte(kinds)) != 1 {
		return nil, errors.New("the definition has permissions of type AllNamespaces, or lacks CurrentCluster and " +
			"SingleNamespace in one version")
	}
	raw = bytes.Replace(raw, []byte(next), []byte(allNamespaces+next), 1)
	return bytes.Replace(raw, []byte(kinds), []byte(kinds+"                                - AllNamespaces\n"), 1), nil
}

// deploymentConfigs is the definition of AddOnDeploymentConfigs.
const deploymentConfigs = "hub/addondeploymentconfigs.yaml"

// replicaConfigs is the schema of a field that OCM has and the API module does not yet. Without it an API server drops
// the field.
const replicaConfigs = `              replicaConfigs:
                description: |-
                  replicaConfigs sets the number of replicas of Deployments of the add-on agents.
                  If several entries match a Deployment, the last one counts.
                items:
                  description: ReplicaConfig is the number of replicas of one or a
                    group of Deployments.
                  properties:
                    replicas:
                      description: replicas is the number of replicas.
                      format: int32
                      minimum: 0
                      type: integer
                    workloadID:
                      description: |-
                        workloadID is 'deployments:{name}', in which wildcards (*) can be used to match several
                        Deployments.
                      maxLength: 512
                      pattern: ^(deployments|\*):.+$
                      type: string
                  required:
                  - replicas
                  - workloadID
                  type: object
                type: array
`

// withReplicas returns the definition of AddOnDeploymentConfigs with field spec.replicaConfigs in both versions.
func withReplicas(raw []byte) ([]byte, error) {
	const next = "              resourceRequirements:\n"
	if bytes.Contains(raw, []byte("replicaConfigs:")) || bytes.Count(raw, []byte(next)) != 2 {
		return nil, errors.New("the definition has spec.replicaConfigs, or not spec.resourceRequirements in two versions")
	}
	return bytes.ReplaceAll(raw, []byte(next), []byte(replicaConfigs+next)), nil
}

// managements is the definition of ClusterManagementAddOns.
const managements = "hub/clustermanagementaddons.yaml"

// autoDiscovery is the schema of a field of v1beta1 that OCM has and the API module does not yet.
const autoDiscovery = `              hostedModeAutoDiscovery:
                description: |-
                  hostedModeAutoDiscovery says whether the hub finds the hosting clusters of ManagedClusterAddOns that
                  ask for one and name none. It does not by default.
                properties:
                  mode:
                    description: mode is Enable or Disable.
                    enum:
                    - Enable
                    - Disable
                    type: string
                type: object
`

// withDiscovery returns the definition of ClusterManagementAddOns with field spec.hostedModeAutoDiscovery in v1beta1,
// which is the version with spec.defaultConfigs. In v1alpha1 the conversion carries it.
func withDiscovery(raw []byte) ([]byte, error) {
	const next = "              installStrategy:\n"
	before, beta, found := bytes.Cut(raw, []byte("              defaultConfigs:\n"))
	if bytes.Contains(raw, []byte("hostedModeAutoDiscovery:")) || !found || bytes.Count(beta, []byte(next)) != 1 {
		return nil, errors.New("the definition has spec.hostedModeAutoDiscovery, or not one spec.installStrategy after " +
			"spec.defaultConfigs")
	}
	own := bytes.Replace(beta, []byte(next), []byte(autoDiscovery+next), 1)
	return slices.Concat(before, []byte("              defaultConfigs:\n"), own), nil
}

// completed returns a definition with what we add to that of the API module.
func completed(name string, raw []byte) ([]byte, error) {
	switch name {
	case templates:
		raw, err := withPermissions(raw)
		if err != nil {
			return nil, err
		}
		return withBeta(raw)
	case deploymentConfigs:
		return withReplicas(raw)
	case managements:
		return withDiscovery(raw)
	}
	return raw, nil
}

// write makes the folder to hold exactly our CustomResourceDefinitions, byte for byte those of the API module in from,
// except for bounds, the second version of AddOnTemplates and fields that the module does not have yet.
func write(from, to string) error {
	if err := os.RemoveAll(to); err != nil {
		return fmt.Errorf("clearing %s: %w", to, err)
	}
	for name, source := range sources() {
		raw, err := os.ReadFile(filepath.Join(from, source))
		if err != nil {
			return fmt.Errorf("reading the definition for %s: %w", name, err)
		}
		if raw, err = completed(name, raw); err != nil {
			return fmt.Errorf("adding to %s: %w", name, err)
		}
		if err := writeBounded(filepath.Join(to, name), raw); err != nil {
			return err
		}
	}
	for _, name := range ours() {
		raw, err := own.ReadFile("own/" + name)
		if err != nil {
			return fmt.Errorf("reading our definition %s: %w", name, err)
		}
		if err := writeBounded(filepath.Join(to, "hub", name), raw); err != nil {
			return err
		}
	}
	return nil
}

// own has the definitions of our own kinds, and ours their files.
//
//go:embed own
var own embed.FS

func ours() []string { return []string{"addonpolicies.yaml", "maintenancewindows.yaml"} }

// writeBounded writes a definition with bounds to a file.
func writeBounded(target string, raw []byte) error {
	if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
		return fmt.Errorf("making the folder of %s: %w", target, err)
	}
	if err := os.WriteFile(target, bounded(raw), 0o644); err != nil {
		return fmt.Errorf("writing %s: %w", target, err)
	}
	return nil
}
