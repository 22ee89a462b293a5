package rollout

import (
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"

	"github.com/spokelet/spokelet/internal/confighash"
)

// hashes caches the hash of every config's latest content, because every cluster needs it. An entry is valid only for
// the UID and resourceVersion that it was computed from. The zero value is empty.
type hashes struct {
	mu      sync.Mutex
	entries map[addonv1beta1.AddOnConfig]hashEntry
}

type hashEntry struct {
	uid             types.UID
	resourceVersion string
	hash            string
}

func (h *hashes) of(config addonv1beta1.AddOnConfig, object *unstructured.Unstructured) (string, error) {
	entry := hashEntry{uid: object.GetUID(), resourceVersion: object.GetResourceVersion()}
	h.mu.Lock()
	defer h.mu.Unlock()
	if known, ok := h.entries[config]; ok && known.uid == entry.uid && known.resourceVersion == entry.resourceVersion {
		return known.hash, nil
	}
	hash, err := confighash.SpecHash(object)
	if err != nil {
		return "", err
	}
	if h.entries == nil {
		h.entries = map[addonv1beta1.AddOnConfig]hashEntry{}
	}
	entry.hash = hash
	h.entries[config] = entry
	return hash, nil
}
