package manifests

import (
	"embed"
	"path"
)

//go:embed hub
var hub embed.FS

// Hub returns what the hub manager needs to run and clusters need to join, one YAML file each, in the order in which
// it can be applied: namespaces, the service account of the hub manager and its rights, the bootstrap identity, and a
// role for those who write works without an executor.
func Hub() [][]byte {
	return hubFiles("namespaces.yaml", "service-account.yaml", "token-policy.yaml", "clusterrole.yaml", "bootstrap.yaml",
		"work-executor.yaml")
}

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
