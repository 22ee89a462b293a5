package manifests

import (
	"bytes"
	"embed"
	"io/fs"
	"path"
	"strings"
)

//go:embed klusterlet
var klusterlet embed.FS

// These files of the klusterlet folders are the agent itself; all others are what it needs.
const (
	deploymentFile    = "deployment.yaml"
	networkPolicyFile = "network-policy.yaml"
)

// Klusterlet returns what an agent needs on its own cluster: namespaces, service account and RBAC, one file each, in
// the order in which they are to be applied. It starts no agent; see KlusterletDeployment.
func Klusterlet() [][]byte {
	entries, _ := fs.ReadDir(klusterlet, "klusterlet")
	var docs [][]byte
	for _, entry := range entries {
		name := entry.Name()
		apart := name == deploymentFile || name == networkPolicyFile || name == kustomizationFile
		if apart || !strings.HasSuffix(name, ".yaml") {
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

//go:embed klusterlet-hosted
var klusterletHosted embed.FS

// hostedNamespace is the namespace that the files of the hosted agent name; each agent has another one.
const hostedNamespace = "klusterlet-hosted"

// KlusterletHosted returns what the agent of another cluster needs on the hosting cluster, in a namespace of its own,
// one file each: the namespace, the ServiceAccount with its roles, the NetworkPolicy, and the Deployment, in the order
// of applying.
func KlusterletHosted(namespace string) [][]byte {
	var docs [][]byte
	for _, name := range []string{"namespace.yaml", "service-account.yaml", networkPolicyFile, deploymentFile} {
		if doc, err := klusterletHosted.ReadFile(path.Join("klusterlet-hosted", name)); err == nil {
			docs = append(docs, bytes.ReplaceAll(doc, []byte(": "+hostedNamespace+"\n"), []byte(": "+namespace+"\n")))
		}
	}
	return docs
}
