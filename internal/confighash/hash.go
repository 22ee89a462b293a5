package confighash

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
)

// SpecHash returns the spec hash of a config: the SHA-256, in lower-case hex, of the canonical JSON of everything but
// its apiVersion, kind, metadata and status (docs/reference/hub.md, "Hash of a configuration"). A nil object has the
// empty hash.
func SpecHash(u *unstructured.Unstructured) (string, error) {
	if u == nil {
		return "", nil
	}
	raw, err := Content(u)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:]), nil
}

// Content returns the canonical JSON of the content of a config, packed or not.
func Content(u *unstructured.Unstructured) ([]byte, error) {
	if text, is := packed(u); is {
		return []byte(text), nil
	}
	// encoding/json has the format of OCM: sorted keys, no whitespace, escaped HTML characters, the shortest
	// numbers.
	raw, err := json.Marshal(contentOf(u))
	if err != nil {
		return nil, fmt.Errorf("encoding %s %s/%s: %w", u.GetKind(), u.GetNamespace(), u.GetName(), err)
	}
	return raw, nil
}

// contentOf returns the fields that are hashed.
func contentOf(u *unstructured.Unstructured) map[string]any {
	content := make(map[string]any, len(u.Object))
	for key, value := range u.Object {
		switch key {
		case "apiVersion", "kind", "metadata", "status":
		default:
			content[key] = value
		}
	}
	return content
}

// Key is the key of a config in the config-spec-hash annotation of a ManifestWork: resource[.group]/namespace/name,
// with an empty namespace for a cluster-scoped config (docs/reference/hub.md, "Works of an add-on").
func Key(resource addonv1beta1.ConfigGroupResource, config addonv1beta1.ConfigReferent) string {
	kind := resource.Resource
	if resource.Group != "" {
		kind += "." + resource.Group
	}
	return kind + "/" + config.Namespace + "/" + config.Name
}

// Map returns the content of the config-spec-hash annotation of an add-on's ManifestWorks: the hash of every desired
// config by its key. References without a desired config are left out.
func Map(references []addonv1beta1.ConfigReference) map[string]string {
	hashes := make(map[string]string, len(references))
	for _, reference := range references {
		if desired := reference.DesiredConfig; desired != nil {
			hashes[Key(reference.ConfigGroupResource, desired.ConfigReferent)] = desired.SpecHash
		}
	}
	return hashes
}

// Order returns the order of configurations, by their keys (Key), as the annotation of an add-on's ManifestWorks has
// it: a JSON object with a hash for each kind of which there are several; empty where there is none. Of several of a
// kind one counts, by its place.
func Order(keys []string) string {
	kinds := map[string][]string{}
	for _, key := range keys {
		kind, _, _ := strings.Cut(key, "/")
		kinds[kind] = append(kinds[kind], key)
	}
	order := map[string]string{}
	for kind, of := range kinds {
		if len(of) > 1 {
			sum := sha256.Sum256([]byte(strings.Join(of, "\n")))
			order[kind] = hex.EncodeToString(sum[:8])
		}
	}
	if len(order) == 0 {
		return ""
	}
	raw, err := json.Marshal(order)
	if err != nil {
		return "" // A map of strings can always be encoded.
	}
	return string(raw)
}

// OrderOf returns the Order of what references desire.
func OrderOf(references []addonv1beta1.ConfigReference) string {
	keys := make([]string, 0, len(references))
	for _, reference := range references {
		if desired := reference.DesiredConfig; desired != nil {
			keys = append(keys, Key(reference.ConfigGroupResource, desired.ConfigReferent))
		}
	}
	return Order(keys)
}
