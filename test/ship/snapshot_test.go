package ship_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"

	"github.com/spokelet/spokelet/test/suite"
)

// snapshot is the content of all objects of a cluster, by resource, namespace and name.
type snapshot map[string]string

// volatile are resources whose objects come and go by themselves.
func volatile(resource schema.GroupVersionResource) bool {
	switch resource.GroupResource().String() {
	case "events", "events.events.k8s.io", "leases.coordination.k8s.io", "componentstatuses", "endpoints",
		"apiservices.apiregistration.k8s.io":
		return true
	}
	return false
}

// snapshotOf reads every object of a cluster that can be listed, but for those in the given namespaces and these
// namespaces themselves.
func snapshotOf(t *testing.T, plane *suite.Plane, aside ...string) snapshot {
	t.Helper()
	disco, err := discovery.NewDiscoveryClientForConfig(plane.Admin())
	require.NoError(t, err)
	objects, err := dynamic.NewForConfig(plane.Admin())
	require.NoError(t, err)
	lists, err := disco.ServerPreferredResources()
	require.NoError(t, err)
	all := snapshot{}
	for _, list := range lists {
		version, err := schema.ParseGroupVersion(list.GroupVersion)
		require.NoError(t, err)
		for _, resource := range list.APIResources {
			which := version.WithResource(resource.Name)
			if volatile(which) || !slices.Contains(resource.Verbs, "list") {
				continue
			}
			found, err := objects.Resource(which).List(t.Context(), metav1.ListOptions{})
			require.NoError(t, err, "%s", which)
			for i := range found.Items {
				item := &found.Items[i]
				if slices.Contains(aside, item.GetNamespace()) ||
					resource.Name == "namespaces" && slices.Contains(aside, item.GetName()) {
					continue
				}
				all[fmt.Sprintf("%s %s/%s", which.GroupResource(), item.GetNamespace(), item.GetName())] = content(t, item)
			}
		}
	}
	return all
}

// content returns what an object says, without what every write of it changes.
func content(t *testing.T, object *unstructured.Unstructured) string {
	t.Helper()
	for _, field := range []string{"resourceVersion", "managedFields", "generation"} {
		unstructured.RemoveNestedField(object.Object, "metadata", field)
	}
	unstructured.RemoveNestedField(object.Object, "status")
	text, err := json.Marshal(object.Object)
	require.NoError(t, err)
	return string(text)
}

// difference returns what is different, one line each; empty for equal snapshots.
func (s snapshot) difference(after snapshot) string {
	var lines []string
	for _, name := range slices.Sorted(maps.Keys(s)) {
		switch now, found := after[name]; {
		case !found:
			lines = append(lines, "missing: "+name)
		case now != s[name]:
			lines = append(lines, "changed: "+name+"\n  from "+s[name]+"\n  to   "+now)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(after)) {
		if _, found := s[name]; !found {
			lines = append(lines, "left: "+name)
		}
	}
	return strings.Join(lines, "\n")
}
