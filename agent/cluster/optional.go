package cluster

import (
	"context"
	"slices"
	"strings"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
)

// definitions is the resource of CustomResourceDefinitions.
func definitions() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
}

// optional knows the claims of a kind whose CustomResourceDefinition may come and go while the agent runs. It watches
// that one definition by its name; the kind itself is watched as long as the definition serves it. Where the agent may
// not watch definitions, it asks for the kind itself, every few minutes at rest.
type optional struct {
	// resource is the kind, without version.
	resource schema.GroupResource
	// versions are those that the agent understands, the preferred one first.
	versions   []string
	definition watched[definition]
	objects    watched[claim]
	// moved holds one signal when the definition changed.
	moved chan struct{}
}

// newOptional returns the claims of a kind; changed is called when they change.
func newOptional(resource schema.GroupResource, changed func(), versions ...string) *optional {
	k := &optional{resource: resource, versions: versions, moved: make(chan struct{}, 1)}
	k.definition = watched[definition]{
		name: "the definition of " + resource.String(), keep: definitionOf, changed: k.signal,
		selector: func(options *metav1.ListOptions) {
			options.FieldSelector = fields.OneTermEqualSelector(metav1.ObjectNameField, resource.String()).String()
		},
	}
	k.objects = watched[claim]{name: resource.String(), keep: claimOf, changed: changed}
	return k
}

// signal says that the definition changed; it never blocks.
func (k *optional) signal() {
	select {
	case k.moved <- struct{}{}:
	default:
	}
}

// run watches until ctx ends.
func (k *optional) run(ctx context.Context, client dynamic.Interface) {
	var watches sync.WaitGroup
	defer watches.Wait()
	watches.Go(func() { k.definition.follow(ctx, client, client.Resource(definitions())) })
	began, running, stop := false, "", func() {}
	defer func() { stop() }()
	for {
		if version, known := k.version(); known && (!began || version != running) {
			stop()
			stop = k.start(ctx, client, version)
			began, running = true, version
		}
		select {
		case <-ctx.Done():
			return
		case <-k.moved:
		}
	}
}

// version returns in which version the kind is to be watched, empty for not at all, and whether that is known.
func (k *optional) version() (version string, known bool) {
	if k.definition.isRefused() {
		return k.versions[0], true
	}
	found, known := k.definition.list()
	for _, d := range found {
		return d.serves(k.versions), true
	}
	return "", known
}

// start watches the kind in a version until the returned function is called, which waits for the end of the watch.
func (k *optional) start(ctx context.Context, client dynamic.Interface, version string) (stop func()) {
	if version == "" {
		k.objects.set(nil, true, false)
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		k.objects.follow(ctx, client, client.Resource(k.resource.WithVersion(version)))
	}()
	return func() {
		cancel()
		<-done
	}
}

// definition is what is kept of a CustomResourceDefinition: the versions that it serves, each with a comma before and
// after; none before it is established.
type definition string

// definitionOf reads a CustomResourceDefinition. What is not as it should be serves nothing.
func definitionOf(object *unstructured.Unstructured) (definition, error) {
	conditions, _, _ := unstructured.NestedSlice(object.Object, "status", "conditions")
	established := slices.ContainsFunc(conditions, func(c any) bool {
		condition, _ := c.(map[string]any)
		return condition["type"] == "Established" && condition["status"] == "True"
	})
	if !established {
		return "", nil
	}
	var served strings.Builder
	versions, _, _ := unstructured.NestedSlice(object.Object, "spec", "versions")
	for _, v := range versions {
		version, _ := v.(map[string]any)
		if name, ok := version["name"].(string); ok && version["served"] == true {
			served.WriteString("," + name + ",")
		}
	}
	return definition(served.String()), nil
}

// serves returns the first of the versions that is served, empty for none.
func (d definition) serves(versions []string) string {
	for _, version := range versions {
		if strings.Contains(string(d), ","+version+",") {
			return version
		}
	}
	return ""
}
