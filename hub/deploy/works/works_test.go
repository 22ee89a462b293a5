package works

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	workv1 "open-cluster-management.io/api/work/v1"
)

func configMap(name string, bytes int) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": name, "namespace": "ns"},
		"data": map[string]any{"k": strings.Repeat("x", bytes)},
	}}
}

func TestTheNullsOfGoTypesAreNotDeployed(t *testing.T) {
	object := configMap("a", 1)
	object.Object["metadata"] = map[string]any{"name": "a", "creationTimestamp": nil}
	m, err := encode(object, 0)
	require.NoError(t, err)
	assert.JSONEq(t, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},"data":{"k":"x"}}`, string(m.Raw))
	assert.Contains(t, object.Object["metadata"], "creationTimestamp", "the rendering itself is left alone")
}

func TestWorkNames(t *testing.T) {
	addOn := &addonv1beta1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{Namespace: "c1", Name: "a"}}
	tests := map[Side]map[string]int{
		Managed: {
			"addon-a-deploy-0": 0, "addon-a-deploy-12": 12, "addon-a-deploy-": -1, "addon-a-deploy-01": -1,
			"addon-a-deploy-x": -1, "addon-b-deploy-0": -1, "addon-a-deploy-hosting-c1-0": -1, "addon-a-pre-delete": -1,
			"addon-a-deploy--1": -1,
		},
		Hosting: {
			"addon-a-deploy-hosting-c1-0": 0, "addon-a-deploy-hosting-c1-12": 12, "addon-a-deploy-hosting-c11-0": -1,
			"addon-a-deploy-0": -1, "addon-a-pre-delete-hosting-c1": -1, "mine": -1,
		},
	}
	for side, all := range tests {
		set := Set{AddOn: addOn, Side: side, Purpose: Deploy}
		for name, want := range all {
			index, numbered := set.Index(name)
			assert.Equal(t, want >= 0, numbered, name)
			if numbered {
				assert.Equal(t, want, index)
				assert.Equal(t, name, set.Name(index))
			}
		}
	}
	assert.Equal(t, "addon-a-pre-delete", Set{AddOn: addOn, Side: Managed, Purpose: PreDelete}.Name(0))
	assert.Equal(t, "addon-a-pre-delete-hosting-c1", Set{AddOn: addOn, Side: Hosting, Purpose: PreDelete}.Name(0))
}

func TestPlurals(t *testing.T) {
	for kind, want := range map[string]string{
		"Deployment": "deployments", "NetworkPolicy": "networkpolicies", "Ingress": "ingresses", "Endpoints": "endpoints",
		"StorageClass": "storageclasses", "Gateway": "gateways", "ServiceAccount": "serviceaccounts", "Mesh": "meshes",
	} {
		assert.Equal(t, want, plurals(kind, "")[0], kind)
	}
	assert.Equal(t, []string{"oxen"}, plurals("Ox", "oxen"))
	definition := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": map[string]any{"name": "oxen.farm.io"},
		"spec": map[string]any{"group": "farm.io", "names": map[string]any{"kind": "Ox", "plural": "oxen"}},
	}}
	ox := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "farm.io/v1", "kind": "Ox", "metadata": map[string]any{
			"name": "o", "annotations": map[string]any{"addon.open-cluster-management.io/deletion-orphan": "true"},
		},
	}}
	labelled := configMap("l", 1)
	labelled.SetLabels(map[string]string{"addon.open-cluster-management.io/deletion-orphan": ""})
	option := orphans([]*unstructured.Unstructured{definition, ox, labelled})
	require.NotNil(t, option)
	assert.Equal(t, []workv1.OrphaningRule{{Group: "farm.io", Resource: "oxen", Name: "o"}},
		option.SelectivelyOrphan.OrphaningRules)
	assert.Nil(t, orphans([]*unstructured.Unstructured{labelled}), "a label does not count")
}
