package manifest

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"hash"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	workv1 "open-cluster-management.io/api/work/v1"
)

// ID identifies an object on the spoke in all versions of its API.
type ID struct {
	Group, Resource, Name, Namespace string
}

// String names the object for a person: "configmaps default/x", "deployments.apps default/x" or "namespaces x".
func (id ID) String() string {
	kind := schema.GroupResource{Group: id.Group, Resource: id.Resource}.String()
	if id.Namespace == "" {
		return kind + " " + id.Name
	}
	return kind + " " + id.Namespace + "/" + id.Name
}

// IDOf is the object of an entry of the list of applied resources.
func IDOf(entry workv1.AppliedManifestResourceMeta) ID {
	return ID{Group: entry.Group, Resource: entry.Resource, Namespace: entry.Namespace, Name: entry.Name}
}

// ResourceOf is the resource and version under which an entry of the list of applied resources was applied.
func ResourceOf(entry workv1.AppliedManifestResourceMeta) schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: entry.Group, Version: entry.Version, Resource: entry.Resource}
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

// Digest is a SHA-256; the zero Digest means none.
type Digest [sha256.Size]byte

// DigestOf digests a value as JSON; maps digest the same in any order. An empty value has the zero Digest.
func DigestOf(value any) Digest {
	raw, err := json.Marshal(value)
	if err != nil || string(raw) == "null" {
		return Digest{}
	}
	return sha256.Sum256(raw)
}

// desiredDigest digests all that decides the desired state of an object: the bytes of the manifest, whether the work
// owns the object, and the update strategy.
func desiredDigest(m *Manifest, raw []byte) Digest {
	sum := sha256.New()
	writePart(sum, raw)
	writePart(sum, fmt.Append(nil, m.Options.Owned))
	strategy, _ := json.Marshal(m.Options.Strategy)
	writePart(sum, strategy)
	return Digest(sum.Sum(nil))
}

// writePart adds one part to a digest so that parts cannot run into each other.
func writePart(sum hash.Hash, part []byte) {
	_, _ = fmt.Fprintf(sum, "%d:", len(part))
	_, _ = sum.Write(part)
}

const (
	// rankOther is the rank of every kind that the table does not know, all custom resources among them.
	rankOther = 1000
	// rankUnknown is the rank of a manifest without a kind.
	rankUnknown = 1001
)

// Rank returns the place of a kind in the order of applying, by its name only (docs/reference/work.md, "Order of
// applying"): kinds that others need come first.
func Rank(kind string) int {
	if kind == "" {
		return rankUnknown
	}
	// The plain plural is right for all kinds that have a place, and for others it does not matter.
	resource, _ := meta.UnsafeGuessKindToResource(schema.GroupVersionKind{Kind: kind})
	return place(resource.Resource)
}

// ResourceRank is Rank for a resource, because the list of applied resources has no kinds. A resource of the same name
// in a group of its own ranks with the custom resources.
func ResourceRank(group, resource string) int {
	if strings.Contains(group, ".") && !strings.HasSuffix(group, ".k8s.io") {
		return rankOther
	}
	return place(resource)
}

// IsOther reports whether a resource has no place in the order, as no custom one has.
func IsOther(group, resource string) bool { return ResourceRank(group, resource) == rankOther }

// place is the table of both.
func place(resource string) int {
	switch resource {
	case "priorityclasses", "namespaces", "customresourcedefinitions", "storageclasses", "persistentvolumes",
		"podsecuritypolicies":
		return 0
	case "clusterroles", "clusterrolebindings", "roles", "rolebindings":
		return 1
	case "networkpolicies", "resourcequotas", "limitranges", "poddisruptionbudgets", "serviceaccounts":
		return 2
	case "secrets", "configmaps", "persistentvolumeclaims":
		return 3
	case "services":
		return 4
	case "daemonsets", "pods", "replicationcontrollers", "replicasets", "deployments", "horizontalpodautoscalers",
		"statefulsets", "jobs", "cronjobs":
		return 5
	case "apiservices", "mutatingwebhookconfigurations", "validatingwebhookconfigurations",
		"validatingadmissionpolicies", "validatingadmissionpolicybindings":
		return 6
	}
	return rankOther
}
