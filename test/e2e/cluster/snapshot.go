package cluster

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Snapshot has a hash of the content of every object of a cluster, by the name of the object.
type Snapshot map[string]string

// volatile are the resources that change or come and go by themselves in a cluster where nobody does anything.
// Certificate requests are removed by Kubernetes an hour after they were answered.
var volatile = []string{
	"events", "leases", "nodes", "componentstatuses", "endpoints", "endpointslices", "certificatesigningrequests",
	"pods", "replicasets", "controllerrevisions",
}

// Snapshot reads all objects, but for those that change by themselves.
func (c *Cluster) Snapshot(ctx context.Context) (Snapshot, error) {
	disco, err := discovery.NewDiscoveryClientForConfig(c.Admin)
	if err != nil {
		return nil, fmt.Errorf("building a discovery client: %w", err)
	}
	lists, err := disco.ServerPreferredResources()
	if err != nil {
		return nil, fmt.Errorf("reading the resources of cluster %s: %w", c.Name, err)
	}
	reader, err := dynamic.NewForConfig(c.Admin)
	if err != nil {
		return nil, fmt.Errorf("building a client: %w", err)
	}
	snapshot := Snapshot{}
	for _, list := range lists {
		version, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			return nil, fmt.Errorf("reading the resources of cluster %s: %w", c.Name, err)
		}
		for _, resource := range list.APIResources {
			if !slices.Contains(resource.Verbs, "list") || slices.Contains(volatile, resource.Name) {
				continue
			}
			if err := snapshot.add(ctx, reader, version.WithResource(resource.Name)); err != nil {
				return nil, fmt.Errorf("listing %s of cluster %s: %w", resource.Name, c.Name, err)
			}
		}
	}
	return snapshot, nil
}

func (s Snapshot) add(ctx context.Context, reader dynamic.Interface, resource schema.GroupVersionResource) error {
	list, err := reader.Resource(resource).List(ctx, metav1.ListOptions{})
	if apierrors.IsMethodNotSupported(err) {
		return nil
	}
	if err != nil {
		return err
	}
	for i := range list.Items {
		object := &list.Items[i]
		hash, err := contentHash(object)
		if err != nil {
			return err
		}
		name := object.GetName()
		if namespace := object.GetNamespace(); namespace != "" {
			name = namespace + "/" + name
		}
		s[resource.GroupResource().String()+" "+name] = hash
	}
	return nil
}

// contentHash is the hash of what a person or a program sets, without what the API server adds.
func contentHash(object *unstructured.Unstructured) (string, error) {
	content := map[string]any{}
	for key, value := range object.Object {
		if key != "metadata" && key != "status" {
			content[key] = value
		}
	}
	content["labels"], content["annotations"] = object.GetLabels(), object.GetAnnotations()
	content["finalizers"], content["owners"] = object.GetFinalizers(), object.GetOwnerReferences()
	text, err := json.Marshal(content)
	if err != nil {
		return "", fmt.Errorf("hashing %s: %w", object.GetName(), err)
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:]), nil
}

// Diff returns an error that names what is more, less or different in a later snapshot; nil when nothing is.
func (s Snapshot) Diff(later Snapshot) error {
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(later)) {
		switch before, existed := s[name]; {
		case !existed:
			errs = append(errs, fmt.Errorf("%s is left", name))
		case before != later[name]:
			errs = append(errs, fmt.Errorf("%s is different", name))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s)) {
		if _, exists := later[name]; !exists {
			errs = append(errs, fmt.Errorf("%s is gone", name))
		}
	}
	return errors.Join(errs...)
}
