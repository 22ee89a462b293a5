package template

import (
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
)

// TestANamespaceWithoutMetadataIsAProblemAndNoPanic: its author is told what is missing.
func TestANamespaceWithoutMetadataIsAProblemAndNoPanic(t *testing.T) {
	for name, manifests := range map[string][]map[string]any{
		"one":      {{"apiVersion": "v1", "kind": "Namespace"}},
		"two":      {{"apiVersion": "v1", "kind": "Namespace"}, {"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"labels": map[string]any{"a": "b"}}}},
		"null":     {{"apiVersion": "v1", "kind": "Namespace", "metadata": nil}},
		"variable": {{"apiVersion": "v1", "kind": "Namespace", "metadata": "{{X}}"}},
	} {
		t.Run(name, func(t *testing.T) {
			config := &addonv1beta1.AddOnDeploymentConfig{}
			config.Spec.AgentInstallNamespace = "other"
			in := Input{Config: config, AddOn: "x", Cluster: &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: "c"}}}
			require.NotPanics(t, func() {
				_, err := Compile(&Template{Name: "x", Manifests: manifests}).Render(in)
				t.Log(err)
			})
		})
	}
}
