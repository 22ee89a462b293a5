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

// managedLabel is the key of the label by which a hub marks the namespaces that it manages on the spoke (contract,
// registration 0.1). A label has room for 63 of the 64 characters of the hash.
func managedLabel(hubURL string) string {
	sum := sha256.Sum256([]byte(hubURL))
	return "clusterset.open-cluster-management.io/" + hex.EncodeToString(sum[:])[:63]
}

// namespace is what is kept of a Namespace that carries the label.
type namespace struct {
	name, label string
	// deleting says that it is on its way out.
	deleting bool
}

// newNamespaces returns the Namespaces that carry a label; changed is called when they change.
func newNamespaces(label string, changed func()) *collection[namespace] {
	c := newCollection("namespaces of the hub", func(object *unstructured.Unstructured) (namespace, error) {
		return namespace{
			name: object.GetName(), label: object.GetLabels()[label], deleting: object.GetDeletionTimestamp() != nil,
		}, nil
	}, changed)
	c.labelSelector = label
	return c
}

// marking is a step: the Namespace gets the label of the hub with the value that says whether it is managed, and is
// made first if it is managed and missing.
type marking struct {
	name    string
	managed bool
}

// markings compares the namespaces that the hub manages with those that carry its label. As long as the latter are
// unknown, have is empty: so all that the hub manages are marked, which is right whatever there is, and no others.
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
