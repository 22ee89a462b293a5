package cluster

import (
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
)

// Values of the label of a managed namespace.
const (
	managedTrue  = "true"
	managedFalse = "false"
)

// namespaces is the resource of Namespaces.
func namespaces() schema.GroupVersionResource {
	return schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}
}

// managedLabel is the key of the label of the namespaces that a hub manages on the spoke
// (docs/reference/registration.md, "Names"). A label can hold 63 of the 64 characters of the hash.
func managedLabel(hubURL string) string {
	sum := sha256.Sum256([]byte(hubURL))
	return "clusterset.open-cluster-management.io/" + hex.EncodeToString(sum[:])[:63]
}

// namespace is the value kept of a Namespace that has the label.
type namespace struct {
	name, label string
	// deleting is set while it is being deleted.
	deleting bool
}

// newNamespaces returns the Namespaces that have a label; changed is called when they change.
func newNamespaces(label string, changed func()) *collection[namespace] {
	c := newCollection("namespaces of the hub", func(object *unstructured.Unstructured) (namespace, error) {
		return namespace{
			name: object.GetName(), label: object.GetLabels()[label], deleting: object.GetDeletionTimestamp() != nil,
		}, nil
	}, changed)
	c.labelSelector = label
	return c
}

// marking is a step that sets the label of the hub on a Namespace to whether it is managed. A managed Namespace that is
// missing is created.
type marking struct {
	name    string
	managed bool
}

// markings compares the namespaces that the hub manages with those that have its label. While the latter are unknown,
// have is empty: then all namespaces that the hub manages are marked, which is always right, and no others.
func markings(wanted []clusterv1.ClusterSetManagedNamespaceConfig, have []namespace) []marking {
	marked := map[string]namespace{}
	for _, n := range have {
		marked[n.name] = n
	}
	names := map[string]bool{}
	for _, w := range wanted {
		names[w.Name] = true
	}
	var steps []marking
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if n := marked[name]; n.label != managedTrue && !n.deleting {
			steps = append(steps, marking{name: name, managed: true})
		}
	}
	for _, n := range have {
		if !names[n.name] && n.label != managedFalse && !n.deleting {
			steps = append(steps, marking{name: n.name})
		}
	}
	return steps
}
