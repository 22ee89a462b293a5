package ship_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// values are those of the chart.
type values = map[string]any

// variant is one way to install, by kustomize and by the chart.
type variant struct {
	// folder is the base or overlay; definitions is set where "kubectl apply -f manifests/crds/spoke" comes first.
	folder      string
	definitions bool
	// namespace is that of the release.
	namespace string
	values    values
}

const (
	hubNamespace   = "open-cluster-management-hub"
	agentNamespace = "open-cluster-management-agent"
)

// workRights are the rules of manifests/overlays/klusterlet-without-rights.
func workRights() []any {
	verbs := []any{"get", "list", "watch", "create", "update", "patch", "delete"}
	return []any{
		values{
			"apiGroups": []any{""}, "verbs": verbs,
			"resources": []any{"namespaces", "configmaps", "services", "serviceaccounts"},
		},
		values{"apiGroups": []any{"apps"}, "resources": []any{"deployments", "daemonsets"}, "verbs": verbs},
	}
}

// variants are all ways to install that both kustomize and the chart have.
func variants() map[string]variant {
	return map[string]variant{
		"hub": {folder: "manifests/hub", namespace: hubNamespace, values: values{"mode": "hub"}},
		"hub with replicas": {
			folder: "manifests/overlays/hub-replicas", namespace: hubNamespace, values: values{"mode": "hub", "replicas": 2},
		},
		"klusterlet": {
			folder: "manifests/klusterlet", definitions: true, namespace: agentNamespace, values: values{"mode": "klusterlet"},
		},
		"klusterlet without rights": {
			folder: "manifests/overlays/klusterlet-without-rights", definitions: true, namespace: agentNamespace,
			values: values{"mode": "klusterlet", "workRights": values{"default": false, "rules": workRights()}},
		},
		"klusterlet-hosted": {
			folder: "manifests/overlays/klusterlet-hosted", namespace: "cluster1",
			values: values{"mode": "klusterlet-hosted"},
		},
		"klusterlet-managed": {
			folder: "manifests/klusterlet-hosted/managed", definitions: true, namespace: agentNamespace,
			values: values{"mode": "klusterlet-managed"},
		},
	}
}

// byKustomize returns all objects that the commands of the documentation apply.
func (v variant) byKustomize(t *testing.T) []*unstructured.Unstructured {
	t.Helper()
	objects := kustomized(t, v.folder)
	if v.definitions {
		objects = append(definitions(t, "manifests/crds/spoke"), objects...)
	}
	return objects
}

// byHelm returns all objects of the release.
func (v variant) byHelm(t *testing.T) []*unstructured.Unstructured {
	t.Helper()
	return helmed(t, v.namespace, v.values)
}
