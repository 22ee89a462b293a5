package prune

import (
	"context"
	"fmt"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/spokelet/spokelet/agent/work/manifest"
	"github.com/spokelet/spokelet/agent/work/spoke"
	"github.com/spokelet/spokelet/agent/work/watch"
)

// servedVersion returns a version in which the API server serves the objects of a resource whose given version it does
// not serve any more. It is empty when no objects are left, because the kind has no definition. A kind with a
// definition that is not served is an error: its objects exist, and nobody can reach them.
func (p *pass) servedVersion(ctx context.Context, gone schema.GroupVersionResource) (string, error) {
	p.mu.Lock()
	look, known := p.versions[gone]
	if !known {
		look = sync.OnceValues(func() (string, error) { return p.lookUpVersion(ctx, gone) })
		p.versions[gone] = look
	}
	p.mu.Unlock()
	return look()
}

// lookUpVersion is servedVersion, asked of the API server.
func (p *Pruner) lookUpVersion(ctx context.Context, gone schema.GroupVersionResource) (string, error) {
	meta.MaybeResetRESTMapper(p.Mapper)
	served, err := p.Mapper.ResourcesFor(schema.GroupVersionResource{Group: gone.Group, Resource: gone.Resource})
	if err != nil && !meta.IsNoMatchError(err) {
		return "", fmt.Errorf("looking up in which versions the API server serves %s: %w", gone.GroupResource(), err)
	}
	if version := otherVersion(served, gone); version != "" {
		return version, nil
	}
	definition, err := p.Client.At(watch.Definitions().Resource, manifest.ID{Name: gone.GroupResource().String()}).
		Get(spoke.Outside(ctx))
	if err != nil {
		return "", err
	}
	if definition != nil {
		return "", manifest.Failed(fmt.Sprintf(
			"the API server serves no version of %s, although its CustomResourceDefinition exists; serve one",
			gone.GroupResource()))
	}
	return "", nil
}

// otherVersion returns the first version of a resource that is not the one that is gone; empty when there is none.
func otherVersion(served []schema.GroupVersionResource, gone schema.GroupVersionResource) string {
	for _, resource := range served {
		if resource.GroupResource() == gone.GroupResource() && resource.Version != gone.Version {
			return resource.Version
		}
	}
	return ""
}
