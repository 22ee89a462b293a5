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

	"github.com/spokelet/spokelet/internal/watch"
)

// definitions is the resource of CustomResourceDefinitions.
func definitions() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
}

// optionalKind keeps the claims of a kind whose CustomResourceDefinition may come and go while the agent runs. It watches
// that one definition by its name, and the kind itself as long as the definition serves it. Where the agent may not
// watch definitions, it watches the kind directly and tries again every few minutes while the kind is not served.
type optionalKind struct {
	// resource is the kind, without version.
	resource schema.GroupResource
	// versions are those that the agent understands, the preferred one first.
	versions   []string
	definition *collection[definition]
	claims     *collection[claim]
	// redefined signals that the definition changed.
	redefined watch.Trigger
}

// newOptionalKind returns the claims of a kind; changed is called when they change.
func newOptionalKind(resource schema.GroupResource, changed func(), versions ...string) *optionalKind {
	k := &optionalKind{resource: resource, versions: versions, redefined: watch.NewTrigger()}
	k.definition = newCollection("the definition of "+resource.String(), definitionOf, k.redefined.Fire)
	k.definition.fieldSelector = fields.OneTermEqualSelector(metav1.ObjectNameField, resource.String()).String()
	k.claims = newCollection(resource.String(), claimOf, changed)
	return k
}

// run watches until ctx ends.
func (k *optionalKind) run(ctx context.Context, client dynamic.Interface) {
	var watches sync.WaitGroup
	defer watches.Wait()
	watches.Go(func() { k.definition.run(ctx, client, client.Resource(definitions())) })
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
		case <-k.redefined:
		}
	}
}

// version returns the version in which to watch the kind, empty for none, and whether that is known.
func (k *optionalKind) version() (version string, known bool) {
	if k.definition.forbidden.Load() {
		return k.versions[0], true
	}
	found, known := k.definition.List()
	for _, d := range found {
		return d.serves(k.versions), true
	}
	return "", known
}

// start watches the kind in a version until the returned function is called, which waits for the end of the watch.
func (k *optionalKind) start(ctx context.Context, client dynamic.Interface, version string) (stop func()) {
	if version == "" {
		k.claims.Clear(true)
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		k.claims.run(ctx, client, client.Resource(k.resource.WithVersion(version)))
	}()
	return func() {
		cancel()
		<-done
	}
}

// definition is the value kept of a CustomResourceDefinition: the versions that it serves, each with a comma before and
// after; none before it is established.
type definition string

// definitionOf reads a CustomResourceDefinition. A malformed one serves nothing.
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
