package confighash

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
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
