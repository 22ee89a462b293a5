package manifests

import (
	"embed"
	"path"
	"slices"
	"strings"
)

// The namespace and the ServiceAccounts of the hub manager that the YAML files name.
const (
	defaultNamespace = "open-cluster-management-hub"
	defaultManager   = "spokelet-hub"
	defaultAddons    = "addon-manager-controller-sa"
)

//go:embed hub
var hub embed.FS

// Hub returns what the hub manager needs to run and clusters need to join, one YAML file each, in the order in which
// it can be applied: namespaces, the service accounts of the hub manager, the policies that bound them and everybody
// else, their rights, the bootstrap identity, and a role for those who write works without an executor.
func Hub() [][]byte {
	return slices.Concat(
		hubFiles("namespaces.yaml", "service-account.yaml"), Policies(),
		hubFiles("clusterrole.yaml", "policy-check.yaml", "consent.yaml", "bootstrap.yaml", "work-executor.yaml"),
	)
}

// Policies returns the ValidatingAdmissionPolicies of the hub with their bindings, one YAML file each, ordered by name.
func Policies() [][]byte {
	entries, err := hub.ReadDir("hub/policies")
	if err != nil {
		return nil // A folder that is embedded can be read; a test does.
	}
	var files []string
	for _, entry := range entries {
		if entry.Name() != "kustomization.yaml" {
			files = append(files, path.Join("policies", entry.Name()))
		}
	}
	return hubFiles(files...)
}

// PoliciesFor returns the same for a hub manager that runs in another namespace or under another ServiceAccount. Both
// ServiceAccounts, that of the hub manager and that of add-ons, are in the namespace.
func PoliciesFor(namespace, manager, addons string) [][]byte {
	user := func(namespace, name string) string { return "system:serviceaccount:" + namespace + ":" + name }
	// The longer strings come first: the replacer prefers them.
	names := strings.NewReplacer(
		user(defaultNamespace, defaultManager), user(namespace, manager),
		user(defaultNamespace, defaultAddons), user(namespace, addons),
		defaultNamespace, namespace,
	)
	policies := Policies()
	for i, file := range policies {
		policies[i] = []byte(names.Replace(string(file)))
	}
	return policies
}

// WorksWithoutExecutor returns a policy that is not part of the installation: works without an executor take a right.
func WorksWithoutExecutor() [][]byte { return hubFiles("optional/works-without-executor.yaml") }

// HubDeployment returns the Deployment of the hub manager and the Service of its webhook, one YAML file.
func HubDeployment() [][]byte { return hubFiles("deployment.yaml") }

// hubFiles reads embedded files. They cannot fail to be read: a test reads all of them.
func hubFiles(names ...string) [][]byte {
	files := make([][]byte, 0, len(names))
	for _, name := range names {
		file, err := hub.ReadFile(path.Join("hub", name))
		if err == nil {
			files = append(files, file)
		}
	}
	return files
}
