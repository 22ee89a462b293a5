package inventory

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"
	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/spokelet/spokelet/agent/work/manifest"
)

// HubHash returns the identity of a hub: the lower-case hex SHA-256 of server, which is the server field of the hub
// kubeconfig exactly as written there. Any textual change makes another hub (docs/reference/work.md, "Names and
// identity").
func HubHash(server string) string {
	sum := sha256.Sum256([]byte(server))
	return hex.EncodeToString(sum[:])
}

// Name is the name of the AppliedManifestWork of a work under a hub.
func Name(hubHash, work string) string { return hubHash + "-" + work }

// nameFailure returns why no AppliedManifestWork can have the name that belongs to a work; nil when one can.
func nameFailure(work, name string) *manifest.PermanentError {
	over := len(name) - validation.DNS1123SubdomainMaxLength
	if over <= 0 {
		return nil
	}
	return manifest.Failed(fmt.Sprintf(
		"the name of a ManifestWork may have %d characters at most and this one has %d; create the work under a shorter name",
		len(work)-over, len(work)))
}

// Resource is where AppliedManifestWorks are served.
func Resource() schema.GroupVersionResource {
	return schema.GroupVersionResource{
		Group: workv1.GroupVersion.Group, Version: workv1.GroupVersion.Version, Resource: "appliedmanifestworks",
	}
}
