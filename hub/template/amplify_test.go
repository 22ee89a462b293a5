package template_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
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
			"spec":     map[string]any{"template": map[string]any{"spec": map[string]any{"containers": []any{map[string]any{"name": "c", "image": "quay.io/i"}}}}},
		}
	}
	selector, limits := map[string]string{}, corev1.ResourceList{}
	for i := range 4000 {
		selector[fmt.Sprintf("example.com/a-label-of-a-node-%05d", i)] = strings.Repeat("v", 60)
		limits[corev1.ResourceName(fmt.Sprintf("example.com/%05d", i))] = resource.MustParse("1")
	}
	tolerations := slices.Repeat([]corev1.Toleration{{Key: "k", Value: strings.Repeat("v", 1500)}}, 256)
	for sentence, tc := range map[string]struct {
		deployments int
		spec        addonv1beta1.AddOnDeploymentConfigSpec
	}{
		"the texts of a proxy": {400, addonv1beta1.AddOnDeploymentConfigSpec{ProxyConfig: addonv1beta1.ProxyConfig{
			HTTPProxy: strings.Repeat("x", 65_000), HTTPSProxy: strings.Repeat("y", 65_000), NoProxy: strings.Repeat("z", 65_000),
		}}},
		"the authorities of a proxy": {200, addonv1beta1.AddOnDeploymentConfigSpec{ProxyConfig: addonv1beta1.ProxyConfig{
			HTTPProxy: "x", CABundle: []byte(strings.Repeat("c", 400_000)),
		}}},
		"the selector of nodes": {400, addonv1beta1.AddOnDeploymentConfigSpec{
			NodePlacement: &addonv1beta1.NodePlacement{NodeSelector: selector},
		}},
		"the tolerations": {400, addonv1beta1.AddOnDeploymentConfigSpec{
			NodePlacement: &addonv1beta1.NodePlacement{Tolerations: tolerations},
		}},
		"the resources": {400, addonv1beta1.AddOnDeploymentConfigSpec{ResourceRequirements: []addonv1beta1.ContainerResourceRequirements{
			{ContainerID: "*:*:*", Resources: corev1.ResourceRequirements{Limits: limits}},
		}}},
		"a mirror": {400, addonv1beta1.AddOnDeploymentConfigSpec{Registries: []addonv1beta1.ImageMirror{
			{Source: "quay.io", Mirror: "m.io/" + strings.Repeat("m", 400_000)},
		}}},
	} {
		t.Run(sentence, func(t *testing.T) {
			of := &template.Template{Name: "x"}
			for i := range tc.deployments {
				of.Manifests = append(of.Manifests, deployment(i))
			}
			config := &addonv1beta1.AddOnDeploymentConfig{Spec: tc.spec}
			c := template.Compile(of)
			_, err := c.Render(template.Input{
				Config: config, AddOn: "x", Cluster: &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: "c"}},
			})
			require.ErrorContains(t, err, "in the manifests for this cluster, and may take")
		})
	}
}
