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

// worksNamespace is the namespace in which works have rights by manifests/overlays/klusterlet-without-rights. A user
// makes it before the chart is installed.
const worksNamespace = "open-cluster-management-works"

// withoutRights are the values for what that overlay gives works.
func withoutRights(mode string) values {
	return values{"mode": mode, "workRights": values{"default": false, "namespaces": []any{worksNamespace}}}
}

// variants are all ways to install that both kustomize and the chart have.
func variants() map[string]variant {
	return map[string]variant{
		"hub": {folder: "manifests/hub", namespace: hubNamespace, values: values{"mode": "hub"}},
		"hub with replicas": {
			folder: "manifests/overlays/hub-replicas", namespace: hubNamespace, values: values{"mode": "hub", "replicas": 2},
		},
		"hub with monitoring": {
			folder: "manifests/overlays/hub-monitoring", namespace: hubNamespace, values: values{
				"mode": "hub", "monitoring": values{
					"podMonitor": values{"enabled": true}, "rules": values{"enabled": true}, "dashboards": values{"enabled": true},
				},
			},
		},
		"klusterlet with monitoring": {
			folder: "manifests/overlays/klusterlet-monitoring", definitions: true, namespace: agentNamespace, values: values{
				"mode":       "klusterlet",
				"monitoring": values{"podMonitor": values{"enabled": true}, "rules": values{"enabled": true}},
			},
		},
		"klusterlet": {
			folder: "manifests/klusterlet", definitions: true, namespace: agentNamespace, values: values{"mode": "klusterlet"},
		},
		"klusterlet without rights": {
			folder: "manifests/overlays/klusterlet-without-rights", definitions: true, namespace: agentNamespace,
			values: withoutRights("klusterlet"),
		},
		"klusterlet-hosted": {
			folder: "manifests/overlays/klusterlet-hosted", namespace: "cluster1",
			values: values{"mode": "klusterlet-hosted"},
		},
		"klusterlet-managed": {
			folder: "manifests/klusterlet-hosted/managed", definitions: true, namespace: agentNamespace,
			values: values{"mode": "klusterlet-managed"},
		},
		"klusterlet-hosted without rights": {
			folder: "manifests/overlays/klusterlet-hosted-without-rights", namespace: "cluster1",
			values: values{"mode": "klusterlet-hosted", "workRights": values{"default": false}},
		},
		"klusterlet-managed without rights": {
			folder: "manifests/overlays/klusterlet-hosted-without-rights/managed", definitions: true,
			namespace: agentNamespace, values: withoutRights("klusterlet-managed"),
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
