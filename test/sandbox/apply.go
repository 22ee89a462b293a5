package sandbox

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/restmapper"
)

// fieldManager is the name under which Apply owns fields.
const fieldManager = "spokelet-sandbox"

// Apply creates or updates the objects of YAML documents as an administrator, in order. It returns when every
// CustomResourceDefinition among them is served.
func (c *ControlPlane) Apply(ctx context.Context, yamlDocs ...[]byte) error {
	a, err := newApplier(c)
	if err != nil {
		return err
	}
	for _, doc := range yamlDocs {
		objects, err := Decode(doc)
		if err != nil {
			return err
		}
		for _, object := range objects {
			if err := a.apply(ctx, object); err != nil {
				return fmt.Errorf("applying %s %s: %w", object.GetKind(), object.GetName(), err)
			}
		}
	}
	return nil
}

// Decode splits a YAML stream into its objects; empty documents are left out.
func Decode(doc []byte) ([]*unstructured.Unstructured, error) {
	var objects []*unstructured.Unstructured
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(doc), 4096)
	for {
		object := &unstructured.Unstructured{}
		switch err := decoder.Decode(&object.Object); {
		case errors.Is(err, io.EOF):
			return objects, nil
		case err != nil:
			return nil, fmt.Errorf("decoding YAML: %w", err)
		case len(object.Object) > 0:
			objects = append(objects, object)
		}
	}
}

// applier writes objects of any kind.
type applier struct {
	plane  *ControlPlane
	client dynamic.Interface
	mapper *restmapper.DeferredDiscoveryRESTMapper
}

func newApplier(c *ControlPlane) (*applier, error) {
	client, err := dynamic.NewForConfig(c.Admin())
	if err != nil {
		return nil, fmt.Errorf("building a client: %w", err)
	}
	disco, err := discovery.NewDiscoveryClientForConfig(c.Admin())
	if err != nil {
		return nil, fmt.Errorf("building a discovery client: %w", err)
	}
	mapper := restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(disco))
	return &applier{plane: c, client: client, mapper: mapper}, nil
}

func (a *applier) apply(ctx context.Context, object *unstructured.Unstructured) error {
	gvk := object.GroupVersionKind()
	mapping, err := a.mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	if meta.IsNoMatchError(err) {
		a.mapper.Reset()
		mapping, err = a.mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	}
	if err != nil {
		return fmt.Errorf("finding the resource of its kind: %w", err)
	}
	var to dynamic.ResourceInterface = a.client.Resource(mapping.Resource)
	if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
		to = a.client.Resource(mapping.Resource).Namespace(namespaceOf(object))
	}
	options := metav1.ApplyOptions{FieldManager: fieldManager, Force: true}
	if _, err := to.Apply(ctx, object.GetName(), object, options); err != nil {
		return err
	}
	if gvk.Kind != "CustomResourceDefinition" {
		return nil
	}
	return a.plane.poll(ctx, "CustomResourceDefinition "+object.GetName(), func(ctx context.Context) error {
		live, err := to.Get(ctx, object.GetName(), metav1.GetOptions{})
		if err != nil {
			return err
		}
		return established(live)
	})
}

// established returns an error that says why a CustomResourceDefinition is not served yet.
func established(crd *unstructured.Unstructured) error {
	conditions, _, err := unstructured.NestedSlice(crd.Object, "status", "conditions")
	if err != nil {
		return fmt.Errorf("reading its conditions: %w", err)
	}
	for _, entry := range conditions {
		condition, ok := entry.(map[string]any)
		if ok && condition["type"] == string(apiextensionsv1.Established) && condition["status"] == "True" {
			return nil
		}
	}
	return errors.New("it is not established yet")
}

func namespaceOf(object *unstructured.Unstructured) string {
	if namespace := object.GetNamespace(); namespace != "" {
		return namespace
	}
	return metav1.NamespaceDefault
}
