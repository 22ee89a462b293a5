package deploy

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"github.com/spokelet/spokelet/hub/deploy/works"
	"github.com/spokelet/spokelet/hub/template"
)

// The author of a template names 32 signers by long names, and many containers, each of which is `{"name":"c"}`. Each
// container gets 32 mounts with the names of the signers, and each pod as many volumes: a template of 1.4 MB, less than
// etcd takes, became 700 MB for one cluster, all of which Divide held at once. The template here is a twentieth of that.
func TestTheMountsOfRegistrationsAreBoundedAsTheRestOfTheDecoration(t *testing.T) {
	const deployments, containers = 100, 36
	of := &template.Template{Name: "x", AddOn: "x"}
	for i := range 32 {
		of.Registration = append(of.Registration, addonv1alpha1.RegistrationSpec{
			Type: addonv1alpha1.RegistrationTypeCustomSigner, CustomSigner: &addonv1alpha1.CustomSignerRegistrationConfig{
				SignerName: fmt.Sprintf("%s.%s.%s.com/s%d", strings.Repeat("a", 63), strings.Repeat("b", 63), strings.Repeat("c", 63), i),
			},
		})
	}
	for i := range deployments {
		of.Manifests = append(of.Manifests, map[string]any{
			"apiVersion": "apps/v1", "kind": "Deployment", "metadata": map[string]any{"name": fmt.Sprint("d", i), "namespace": "n"},
			"spec": map[string]any{"template": map[string]any{"spec": map[string]any{
				"containers": slices.Repeat([]any{map[string]any{"name": "c"}}, containers),
			}}},
		})
	}
	require.NoError(t, template.CheckTrust(of, "c", "x", "home"))

	cluster := &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: "c"}}
	_, err := template.Compile(of).Render(template.Input{AddOn: "x", Cluster: cluster})
	require.ErrorContains(t, err, "and may take 4194304")

	of.Manifests = of.Manifests[:1]
	rendering, err := template.Compile(of).Render(template.Input{AddOn: "x", Cluster: cluster})
	require.NoError(t, err, "a few are what signers are for")
	divided, err := works.Divide(rendering.Objects, false)
	require.NoError(t, err)
	assert.NotEmpty(t, divided.Deploy[works.Managed])
}
