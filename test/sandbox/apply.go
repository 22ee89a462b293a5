package sandbox

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
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
	return a.serve(ctx)
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
	// defined are the kinds of the CustomResourceDefinitions that may not be served yet.
	defined []schema.GroupVersionKind
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
		if err := a.serve(ctx); err != nil {
			return err
		}
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
	kinds, err := kindsOf(object)
	if err != nil {
		return err
	}
	a.defined = append(a.defined, kinds...)
	return a.plane.poll(ctx, "CustomResourceDefinition "+object.GetName(), func(ctx context.Context) error {
		live, err := to.Get(ctx, object.GetName(), metav1.GetOptions{})
		if err != nil {
			return err
		}
		return established(live)
	})
}

// kindsOf returns the kinds that a CustomResourceDefinition serves, in each of their versions.
func kindsOf(definition *unstructured.Unstructured) ([]schema.GroupVersionKind, error) {
	var crd apiextensionsv1.CustomResourceDefinition
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(definition.Object, &crd); err != nil {
		return nil, fmt.Errorf("reading it: %w", err)
	}
	var kinds []schema.GroupVersionKind
	for _, version := range crd.Spec.Versions {
		if version.Served {
			kinds = append(kinds, schema.GroupVersionKind{
				Group: crd.Spec.Group, Version: version.Name, Kind: crd.Spec.Names.Kind,
			})
		}
	}
	return kinds, nil
}

// serve waits until the API server names and serves all that was defined, which it does a moment after it says that a
// definition is established.
func (a *applier) serve(ctx context.Context) error {
	if len(a.defined) == 0 {
		return nil
	}
	err := a.plane.poll(ctx, "the API server to serve what is defined", func(ctx context.Context) error {
		a.mapper.Reset()
		for _, gvk := range a.defined {
			mapping, err := a.mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
			if err != nil {
				return err
			}
			// Any other error comes from who serves it.
			_, err = a.client.Resource(mapping.Resource).List(ctx, metav1.ListOptions{Limit: 1})
			if apierrors.IsNotFound(err) {
				return err
			}
		}
		return nil
	})
	a.defined = nil
	return err
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
