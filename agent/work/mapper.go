package work

import (
	"fmt"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// kindMapper maps kinds to resources and caches the answers until Reset, when a kind turned out to be gone: the mapper
// that it begins with never forgets.
type kindMapper struct {
	meta.RESTMapper
	fresh func() (meta.RESTMapper, error)

	mu    sync.Mutex
	known meta.RESTMapper
}

var _ meta.ResettableRESTMapper = (*kindMapper)(nil)

// RESTMapping maps a kind to the resource that serves it.
func (k *kindMapper) RESTMapping(kind schema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
	known, err := k.current()
	if err != nil {
		return nil, err
	}
	return known.RESTMapping(kind, versions...)
}

// ResourcesFor returns the versions in which a resource is served.
func (k *kindMapper) ResourcesFor(resource schema.GroupVersionResource) ([]schema.GroupVersionResource, error) {
	known, err := k.current()
	if err != nil {
		return nil, err
	}
	return known.ResourcesFor(resource)
}

// current is the mapper to ask.
func (k *kindMapper) current() (meta.RESTMapper, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.known == nil {
		known, err := k.fresh()
		if err != nil {
			return nil, fmt.Errorf("preparing to look up kinds: %w", err)
		}
		k.known = known
	}
	return k.known, nil
}

// Reset drops all cached answers.
func (k *kindMapper) Reset() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.known = nil
}
