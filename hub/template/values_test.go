package template_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"

	"github.com/spokelet/spokelet/hub/addon"
	"github.com/spokelet/spokelet/hub/template"
	"github.com/spokelet/spokelet/internal/names"
)

// Shows: hub/variables
func TestVariables(t *testing.T) {
	tests := map[string]struct {
		config    func(*addonv1beta1.AddOnDeploymentConfigSpec)
		registers bool
		text      string
		want      string
		remark    string
	}{
		"the name of the cluster":             {nil, false, "{{CLUSTER_NAME}}", "cluster1", ""},
		"the kubeconfig of a registered one":  {nil, true, "{{HUB_KUBECONFIG}}", "/managed/hub-kubeconfig/kubeconfig", ""},
		"another kubeconfig":                  {define("HUB_KUBECONFIG", "/own"), true, "{{HUB_KUBECONFIG}}", "/own", ""},
		"a kubeconfig without a registration": {define("HUB_KUBECONFIG", "/own"), false, "{{HUB_KUBECONFIG}}", "/own", ""},
		"another name of the cluster": {
			define("CLUSTER_NAME", "other"), false, "{{CLUSTER_NAME}}", "cluster1",
			"AddOnDeploymentConfig configs/config: the customizedVariables entry CLUSTER_NAME does not count, because the hub " +
				`manager defines CLUSTER_NAME as "cluster1"; remove the entry.`,
		},
		"another install namespace": {
			func(s *addonv1beta1.AddOnDeploymentConfigSpec) {
				define("INSTALL_NAMESPACE", "other")(s)
				s.AgentInstallNamespace = "to"
			}, false, "{{INSTALL_NAMESPACE}}", "to",
			"AddOnDeploymentConfig configs/config: the customizedVariables entry INSTALL_NAMESPACE does not count, because the hub " +
				`manager defines INSTALL_NAMESPACE as "to"; remove the entry.`,
		},
		"an install namespace where none is set":                      {define("INSTALL_NAMESPACE", "own"), false, "{{INSTALL_NAMESPACE}}", "own", ""},
		"an install namespace without a configuration":                {nil, false, "{{INSTALL_NAMESPACE}}", names.NamespaceAgentAddon, ""},
		"an install namespace without a configuration, within a text": {nil, false, "in {{INSTALL_NAMESPACE}}", "in " + names.NamespaceAgentAddon, ""},
		"a variable twice": {define("A", "1", "A", "2"), false, "{{A}}", "2", ""},
		"settings are no variables": {func(s *addonv1beta1.AddOnDeploymentConfigSpec) {
			s.ProxyConfig.HTTPProxy = "http://p"
		}, false, "{{HTTP_PROXY}}", "", ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			in := inputOf(t, test.config, `{apiVersion: v1, kind: ConfigMap, metadata: {name: c}, data: {text: "`+test.text+`"}}`)
			if test.registers {
				in.Template.Registration = []addonv1alpha1.RegistrationSpec{kubeClient()}
			}
			result, err := template.Render(in)
			if test.want == "" {
				require.ErrorContains(t, err, "has no value")
				return
			}
			require.NoError(t, err)
			assert.Equal(t, test.want, at(t, result.Objects[0], "data", "text"))
			remarks := template.Remarks(in)
			if test.remark == "" {
				assert.Empty(t, remarks)
				return
			}
			assert.Equal(t, []string{test.remark}, remarks)
		})
	}
}

// OCM has nothing for the namespace then, so an object whose name has it would be another one after a move. What is
// nothing but the namespace, as the name of a Namespace, could not exist there.
//
// Shows: hub/namespace-without-config
func TestANameWithTheInstallNamespaceStaysThatOfOCM(t *testing.T) {
	in := inputOf(t, nil,
		`{apiVersion: v1, kind: Namespace, metadata: {name: "{{INSTALL_NAMESPACE}}"}}`,
		`{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRoleBinding, metadata: {name: "agent:{{INSTALL_NAMESPACE}}"},
		roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: "role:{{INSTALL_NAMESPACE}}"},
		subjects: [{kind: ServiceAccount, name: agent, namespace: "{{INSTALL_NAMESPACE}}"}]}`,
		deploymentText,
		`{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: "role:{{INSTALL_NAMESPACE}}"}, rules: [
		{apiGroups: [rbac.authorization.k8s.io], resources: [clusterroles], verbs: [bind],
		resourceNames: ["role:{{INSTALL_NAMESPACE}}", "{{INSTALL_NAMESPACE}}"]},
		{apiGroups: [""], resources: [users], verbs: [impersonate],
		resourceNames: ["system:serviceaccount:{{INSTALL_NAMESPACE}}:agent"]}]}`,
		`{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRoleBinding, metadata: {name: accounts},
		roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: "role:{{INSTALL_NAMESPACE}}"}, subjects: [
		{apiGroup: rbac.authorization.k8s.io, kind: Group, name: "system:serviceaccounts:{{INSTALL_NAMESPACE}}"},
		{apiGroup: rbac.authorization.k8s.io, kind: User, name: "system:serviceaccount:{{INSTALL_NAMESPACE}}:agent"},
		{apiGroup: rbac.authorization.k8s.io, kind: Group, name: "agents:{{INSTALL_NAMESPACE}}"}]}`)
	result, err := template.Render(in)
	require.NoError(t, err)
	assert.Equal(t, names.NamespaceAgentAddon, result.Objects[0].GetName())
	assert.Equal(t, "agent:", result.Objects[1].GetName())
	assert.Equal(t, "role:", at(t, result.Objects[1], "roleRef", "name"))
	assert.Equal(t, []any{map[string]any{
		"kind": "ServiceAccount", "name": "agent", "namespace": names.NamespaceAgentAddon,
	}}, result.Objects[1].Object["subjects"])
	rendered, err := result.Objects[2].MarshalJSON()
	require.NoError(t, err)
	assert.NotContains(t, string(rendered), "INSTALL_NAMESPACE", "no container gets another environment than before")

	rules, _ := result.Objects[3].Object["rules"].([]any)
	for i, want := range [][]any{
		{"role:", names.NamespaceAgentAddon}, {"system:serviceaccount:" + names.NamespaceAgentAddon + ":agent"},
	} {
		rule, _ := rules[i].(map[string]any)
		assert.Equal(t, want, rule["resourceNames"], "a rule names what a name is, and an account is in its namespace")
	}
	var subjects []any
	all, _ := result.Objects[4].Object["subjects"].([]any)
	for _, item := range all {
		subject, _ := item.(map[string]any)
		subjects = append(subjects, subject["name"])
	}
	assert.Equal(t, []any{
		"system:serviceaccounts:" + names.NamespaceAgentAddon, "system:serviceaccount:" + names.NamespaceAgentAddon + ":agent",
		"agents:",
	}, subjects)
}

func TestABundleThatIsNoText(t *testing.T) {
	in := inputOf(t, func(s *addonv1beta1.AddOnDeploymentConfigSpec) { s.ProxyConfig.CABundle = []byte{0xff, 0xfe} }, deploymentText)
	_, err := template.Render(in)
	require.EqualError(t, err, "AddOnDeploymentConfig configs/config: spec.proxyConfig.caBundle is no text: it must be "+
		"certificates in PEM, encoded in Base64 once")
	assert.True(t, addon.IsInvalid(err))
}
