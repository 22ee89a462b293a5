package manifests

import (
	"embed"
	"io/fs"
	"path"
	"strings"
)

//go:embed klusterlet
var klusterlet embed.FS

// deploymentFile is the one file of the klusterlet folder that is no ground for an agent but an agent itself.
const deploymentFile = "deployment.yaml"

// Klusterlet returns what an agent needs on its own cluster: namespaces, service account and RBAC, one file each, in
// the order in which they are to be applied. It starts no agent; see KlusterletDeployment.
func Klusterlet() [][]byte {
	entries, _ := fs.ReadDir(klusterlet, "klusterlet")
	var docs [][]byte
	for _, entry := range entries {
		name := entry.Name()
		if name == deploymentFile || name == kustomizationFile || !strings.HasSuffix(name, ".yaml") {
			continue
		}
		if doc, err := klusterlet.ReadFile(path.Join("klusterlet", name)); err == nil {
			docs = append(docs, doc)
		}
	}
	return docs
}

// KlusterletDeployment returns the Deployment of the agent.
func KlusterletDeployment() []byte {
	doc, _ := klusterlet.ReadFile(path.Join("klusterlet", deploymentFile))
	return doc
}
