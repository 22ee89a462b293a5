package render_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/spokelet/spokelet/hub/render"
)

// several has an add-on with two configurations of one kind, which asks for a role in all namespaces, and for the
// cluster on which its agent is to run.
const several = `
apiVersion: addon.open-cluster-management.io/v1alpha1
kind: AddOnTemplate
metadata: {name: hello}
spec:
  addonName: hello
  agentSpec:
    workload:
      manifests:
      - {apiVersion: v1, kind: ConfigMap, metadata: {name: hello, namespace: default}, data: {text: "{{TEXT}}"}}
  registration:
  - type: KubeClient
    kubeClient: {hubPermissions: [{type: AllNamespaces, allNamespaces: {clusterRoleName: hello-reader}}]}
---
apiVersion: addon.open-cluster-management.io/v1beta1
kind: ClusterManagementAddOn
metadata: {name: hello}
spec:
  hostedModeAutoDiscovery: {mode: Disable}
  defaultConfigs:
  - {group: addon.open-cluster-management.io, resource: addontemplates, name: hello}
---
apiVersion: addon.open-cluster-management.io/v1alpha1
kind: AddOnDeploymentConfig
metadata: {name: one, namespace: default}
spec: {customizedVariables: [{name: TEXT, value: the first}], agentInstallNamespace: ""}
---
apiVersion: addon.open-cluster-management.io/v1alpha1
kind: AddOnDeploymentConfig
metadata: {name: two, namespace: default}
spec: {customizedVariables: [{name: TEXT, value: the last}], agentInstallNamespace: ""}
---
apiVersion: addon.open-cluster-management.io/v1alpha1
kind: ManagedClusterAddOn
metadata: {name: hello, namespace: cluster1}
spec:
  configs:
  - {group: addon.open-cluster-management.io, resource: addondeploymentconfigs, namespace: default, name: one}
  - {group: addon.open-cluster-management.io, resource: addondeploymentconfigs, namespace: default, name: two}
`

// Shows: hub/config-precedence, hub/all-namespaces
func TestOneOfSeveralConfigurationsIsRendered(t *testing.T) {
	program := render.Program{Name: "spokelet-hub"}
	rendered := func(args ...string) (string, error) {
		var out bytes.Buffer
		err := program.Command(t.Context(), append(args, "-f", "-", "-o", "objects"), strings.NewReader(several), &out)
		return out.String(), err
	}
	for args, want := range map[string]string{
		"--config-precedence=Last": "the last", "--config-precedence=First": "the first", "--cluster=cluster1": "the last",
	} {
		text, err := rendered(args)
		require.NoError(t, err)
		assert.Contains(t, text, "text: "+want, args)
		assert.Contains(t, strings.Join(strings.Fields(strings.ReplaceAll(text, "#", "")), " "),
			"Of 2 configurations of kind AddOnDeploymentConfig, "+want+" counts")
		assert.Contains(t, text, "ClusterRole hello-reader in all namespaces for Group "+
			"system:open-cluster-management:cluster:cluster1:addon:hello")
	}
	_, err := rendered("--config-precedence=Both")
	require.ErrorContains(t, err, `"Both" is neither Last nor First`)
}

// Shows: hub/hosting-field
func TestWhetherTheHubMayFindTheHostingClusterIsRendered(t *testing.T) {
	asks := strings.Replace(several, "metadata: {name: hello, namespace: cluster1}",
		"metadata: {name: hello, namespace: cluster1, annotations: {addon.open-cluster-management.io/install-mode: Hosted}}", 1)
	for mode, says := range map[string]string{"Disable": "", "Enable": "does not say on which cluster its agent runs"} {
		files := []render.File{{Name: "all.yaml", Text: strings.Replace(asks, "mode: Disable", "mode: "+mode, 1)}}
		_, err := render.Program{Name: "spokelet-hub"}.Render(t.Context(), files, render.Options{})
		if says == "" {
			require.NoError(t, err)
			continue
		}
		require.ErrorContains(t, err, says)
	}
}
