package template_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"github.com/spokelet/spokelet/hub/template"
)

// TestAShortTemplateAndAConfigurationTakeLittleMemory: what the manifests of an add-on take for one cluster is
// bounded, whatever a template and its configuration multiply. The policy of AddOnDeploymentConfigs lets each of the
// three texts of a proxy have 65,536 characters.
// Shows: hub/values-bounded
func TestAShortTemplateAndAConfigurationTakeLittleMemory(t *testing.T) {
	deployment := func(i int) map[string]any {
		return map[string]any{
			"apiVersion": "apps/v1", "kind": "Deployment",
			"metadata": map[string]any{"name": fmt.Sprint("d", i), "namespace": fmt.Sprint("n", i)},
			"spec":     map[string]any{"template": map[string]any{"spec": map[string]any{"containers": []any{map[string]any{"name": "c", "image": "i"}}}}},
		}
	}
	for sentence, tc := range map[string]struct {
		deployments int
		proxy       addonv1beta1.ProxyConfig
	}{
		"the texts of a proxy": {400, addonv1beta1.ProxyConfig{
			HTTPProxy: strings.Repeat("x", 65_000), HTTPSProxy: strings.Repeat("y", 65_000), NoProxy: strings.Repeat("z", 65_000),
		}},
		"the authorities of a proxy": {200, addonv1beta1.ProxyConfig{HTTPProxy: "x", CABundle: []byte(strings.Repeat("c", 400_000))}},
	} {
		t.Run(sentence, func(t *testing.T) {
			of := &template.Template{Name: "x"}
			for i := range tc.deployments {
				of.Manifests = append(of.Manifests, deployment(i))
			}
			config := &addonv1beta1.AddOnDeploymentConfig{}
			config.Spec.ProxyConfig = tc.proxy
			c := template.Compile(of)
			_, err := c.Render(template.Input{
				Config: config, AddOn: "x", Cluster: &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: "c"}},
			})
			require.ErrorContains(t, err, "in the manifests for this cluster, and may take")
		})
	}
}
