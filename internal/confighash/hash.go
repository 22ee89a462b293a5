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
	content := make(map[string]any, len(u.Object))
	for key, value := range u.Object {
		switch key {
		case "apiVersion", "kind", "metadata", "status":
		default:
			content[key] = value
		}
	}
	// encoding/json has the format of OCM: sorted keys, no whitespace, escaped HTML characters, the shortest
	// numbers.
	raw, err := json.Marshal(content)
	if err != nil {
		return "", fmt.Errorf("encoding %s %s/%s: %w", u.GetKind(), u.GetNamespace(), u.GetName(), err)
	}
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:]), nil
}
