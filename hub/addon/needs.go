package addon

import (
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// Needs are what the program that runs an add-on must be allowed to do on the hub, besides what every such program must
// be.
type Needs struct {
	// ConfigGVRs are the kinds of configuration that the program reads.
	ConfigGVRs []schema.GroupVersionResource
	// Roles are the roles that it binds.
	Roles []HubRole
	// KubeClient reports whether it approves certificates for the API server of the hub.
	KubeClient bool
	// Approves are the custom signers for which it approves certificates, and Signs those for which it signs them.
	Approves, Signs []string
	// CAs are the Secrets with which it signs. An empty namespace means that of the program.
	CAs []types.NamespacedName
}

// Declarer is an Agent that declares what its program needs. Agents of New are.
type Declarer interface {
	Agent
	// Needs returns what the program needs, whatever the cluster.
	Needs() Needs
}

var _ Declarer = &author{}

// Needs implements Declarer.
func (a *author) Needs() Needs {
	needs := Needs{ConfigGVRs: slices.Clone(a.ConfigGVRs), KubeClient: a.KubeClient != nil}
	if a.KubeClient != nil {
		needs.Roles = slices.Clone(a.KubeClient.Roles)
	}
	for _, signer := range a.CustomSigners {
		needs.Approves = append(needs.Approves, signer.SignerName)
		if signer.CA.Name != "" {
			needs.Signs = append(needs.Signs, signer.SignerName)
			needs.CAs = append(needs.CAs, signer.CA)
		}
	}
	return needs
}
