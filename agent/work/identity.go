package work

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	workv1 "open-cluster-management.io/api/work/v1"
)

// HubHash returns the identity of a hub: the lower-case hex SHA-256 of server, which is the server field of the hub
// kubeconfig exactly as written there. Any textual change makes another hub (work contract, section 2.3).
func HubHash(server string) string {
	sum := sha256.Sum256([]byte(server))
	return hex.EncodeToString(sum[:])
}

// appliedName is the name of the AppliedManifestWork of a work under a hub.
func appliedName(hubHash, work string) string { return hubHash + "-" + work }

// identity says which object on the spoke is meant, whatever API version it is spoken of in.
type identity struct {
	Group, Resource, Name, Namespace string
}

// String names the object for a person: "configmaps default/x", "deployments.apps default/x" or "namespaces x".
func (id identity) String() string {
	kind := schema.GroupResource{Group: id.Group, Resource: id.Resource}.String()
	if id.Namespace == "" {
		return kind + " " + id.Name
	}
	return kind + " " + id.Namespace + "/" + id.Name
}

// entryIdentity is the identity of an entry of the list of applied resources.
func entryIdentity(entry workv1.AppliedManifestResourceMeta) identity {
	return identity{
		Group: entry.Group, Resource: entry.Resource,
		Namespace: entry.Namespace, Name: entry.Name,
	}
}

// entryResource is the resource under which an entry of the list of applied resources is read.
func entryResource(entry workv1.AppliedManifestResourceMeta) schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: entry.Group, Version: entry.Version, Resource: entry.Resource}
}

// compareVersions orders two resource versions of one resource: negative when a is older than b. It returns false when
// they have no order, because one is empty or not a number; then only equality can be told.
func compareVersions(a, b string) (int, bool) {
	if a == b && a != "" {
		return 0, true
	}
	order, err := resourceversion.CompareResourceVersion(a, b)
	return order, err == nil
}

// olderVersion reports whether a is surely older than b.
func olderVersion(a, b string) bool {
	order, known := compareVersions(a, b)
	return known && order < 0
}

// glob reports whether text matches pattern, in which each star stands for any text, the empty one included, and every
// other character for itself.
func glob(pattern, text string) bool {
	parts := strings.Split(pattern, "*")
	if len(parts) == 1 {
		return pattern == text
	}
	first, last := parts[0], parts[len(parts)-1]
	if len(text) < len(first)+len(last) || !strings.HasPrefix(text, first) || !strings.HasSuffix(text, last) {
		return false
	}
	text = text[len(first) : len(text)-len(last)]
	for _, part := range parts[1 : len(parts)-1] {
		at := strings.Index(text, part)
		if at < 0 {
			return false
		}
		text = text[at+len(part):]
	}
	return true
}
