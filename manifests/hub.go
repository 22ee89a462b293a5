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

// Hub returns all that the hub manager needs to run and clusters need to join, one YAML file each, in the order of
// applying: namespaces, the ServiceAccounts of the hub manager, the admission policies, the rights of the hub manager,
// the bootstrap identity, a role for authors of works without an executor, and those for "kubectl spokelet".
func Hub() [][]byte {
	return slices.Concat(
		hubFiles("namespaces.yaml", "service-account.yaml"), Policies(),
		hubFiles("clusterrole.yaml", "policy-check.yaml", "consent.yaml", "bootstrap.yaml", "work-executor.yaml"),
		hubFiles("viewer.yaml"),
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

// PoliciesFor returns the policies for a hub manager in another namespace or with another ServiceAccount. Both
// ServiceAccounts, of the hub manager and of add-ons, are in the namespace.
func PoliciesFor(namespace, manager, addons string) [][]byte {
	user := func(namespace, name string) string { return "system:serviceaccount:" + namespace + ":" + name }
	// The longer strings come first, because the replacer prefers earlier ones.
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

// WorksWithoutExecutor returns an optional policy, with which works without an executor require a right.
func WorksWithoutExecutor() [][]byte { return hubFiles("optional/works-without-executor.yaml") }

// WorkWebhook returns an optional webhook configuration, with which the hub manager checks ManifestWorks. Its CA is
// missing.
func WorkWebhook() [][]byte { return hubFiles("work-webhook/webhook.yaml") }

// HubDeployment returns the Deployment of the hub manager, the Service of its webhook, and the NetworkPolicy of both,
// two YAML files.
func HubDeployment() [][]byte { return hubFiles("deployment.yaml", "network-policy.yaml") }

// hubFiles reads embedded files, which can always be read; a test reads all of them.
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
