package template_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/spokelet/spokelet/hub/template"
)

func moveTo(namespace string) func(*addonv1beta1.AddOnDeploymentConfigSpec) {
	return func(s *addonv1beta1.AddOnDeploymentConfigSpec) { s.AgentInstallNamespace = namespace }
}

// Shows: hub/subjects-moved
func TestOnlyTheAccountsOfTheAgentMove(t *testing.T) {
	const account = `{apiVersion: v1, kind: ServiceAccount, metadata: {name: agent, namespace: from}}`
	tests := map[string]struct {
		others  []string
		subject string
		moves   bool
	}{
		"an account of the template":                      {[]string{account}, `{kind: ServiceAccount, name: agent, namespace: from}`, true},
		"another account in its namespace":                {[]string{account}, `{kind: ServiceAccount, name: builder, namespace: from}`, true},
		"an account of it, looked for elsewhere":          {[]string{account}, `{kind: ServiceAccount, name: agent, namespace: default}`, true},
		"the account of pods without one":                 {[]string{account}, `{kind: ServiceAccount, name: default, namespace: other}`, true},
		"an account without a namespace":                  {[]string{account}, `{kind: ServiceAccount, name: agent}`, true},
		"an account of a template without a namespace":    {nil, `{kind: ServiceAccount, name: agent, namespace: from}`, true},
		"an account in a Namespace of the template":       {[]string{account, `{apiVersion: v1, kind: Namespace, metadata: {name: data}}`}, `{kind: ServiceAccount, name: x, namespace: data}`, true},
		"an account of somebody else":                     {[]string{account}, `{kind: ServiceAccount, name: prometheus, namespace: monitoring}`, false},
		"an account of Kubernetes":                        {[]string{account}, `{kind: ServiceAccount, name: agent, namespace: kube-system}`, false},
		"a user":                                          {[]string{account}, `{kind: User, name: agent}`, false},
		"a group":                                         {[]string{account}, `{kind: Group, name: system:authenticated}`, false},
		"an account that is at the place of the move":     {[]string{account}, `{kind: ServiceAccount, name: agent, namespace: to}`, false},
		"an account in a namespace that a variable names": {[]string{`{apiVersion: v1, kind: ConfigMap, metadata: {name: c, namespace: "ns-{{CLUSTER_NAME}}"}}`}, `{kind: ServiceAccount, name: x, namespace: ns-cluster1}`, true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			binding := `{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRoleBinding, metadata: {name: b}, subjects: [` + test.subject + `]}`
			result, err := template.Render(inputOf(t, moveTo("to"), append([]string{binding}, test.others...)...))
			require.NoError(t, err)
			want := object(t, test.subject)
			if test.moves {
				want["namespace"] = "to"
			}
			assert.Equal(t, want, at(t, result.Objects[0], "subjects", 0))
		})
	}
}

func TestNamespacesThatMoveToOneNameKeepTheirLabels(t *testing.T) {
	result, err := template.Render(inputOf(t, moveTo("to"),
		`{apiVersion: v1, kind: Namespace, metadata: {name: one, labels: {a: one, b: one}}}`,
		`{apiVersion: v1, kind: Namespace, metadata: {name: kube-public}}`,
		`{apiVersion: v1, kind: Namespace, metadata: {name: two, labels: {b: two, c: two}, annotations: {d: two}}}`,
		`{apiVersion: v1, kind: Namespace, metadata: {name: three, labels: {d: three}}}`))
	require.NoError(t, err)
	require.Len(t, result.Objects, 2)
	assert.Equal(t, object(t, `{apiVersion: v1, kind: Namespace, metadata: {
		name: to, labels: {a: one, b: one, c: two, d: three}, annotations: {d: two}}}`), result.Objects[0].Object)
	assert.Equal(t, "kube-public", result.Objects[1].GetName())
}

// Shows: hub/authorities
func TestTheAuthoritiesOfTheProxyAreWhereTheyAreMounted(t *testing.T) {
	deployment := func(kind, namespace string) string {
		return `{apiVersion: apps/v1, kind: ` + kind + `, metadata: {name: w, namespace: ` + namespace + `}, spec: {template: {spec: {containers: [{name: c}]}}}}`
	}
	own := `{apiVersion: v1, kind: ConfigMap, metadata: {name: a-proxy-ca, namespace: one}, data: {ca-bundle.crt: own}}`
	tests := map[string]struct {
		namespace string
		proxied   bool
		manifests []string
		want      []string
	}{
		"no pods":                          {"", true, nil, []string{"open-cluster-management-agent-addon"}},
		"no proxy":                         {"", false, []string{deployment("Deployment", "one")}, []string{"open-cluster-management-agent-addon"}},
		"pods elsewhere":                   {"", true, []string{deployment("Deployment", "one"), deployment("StatefulSet", "two"), deployment("DaemonSet", "one")}, []string{"open-cluster-management-agent-addon", "one", "two"}},
		"pods that move":                   {"to", true, []string{deployment("Deployment", "one"), deployment("StatefulSet", "two")}, []string{"to"}},
		"pods that stay":                   {"to", true, []string{deployment("DaemonSet", "kube-system")}, []string{"to", "kube-system"}},
		"a ConfigMap of the author's":      {"", true, []string{deployment("Deployment", "one"), own}, []string{"one", "open-cluster-management-agent-addon"}},
		"a ConfigMap of theirs that moves": {"to", true, []string{deployment("Deployment", "one"), own}, []string{"to"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			in := inputOf(t, moveTo(test.namespace), test.manifests...)
			in.Config.Spec.ProxyConfig.CABundle = []byte("bundle")
			if test.proxied {
				in.Config.Spec.ProxyConfig.HTTPProxy = "http://p"
			}
			result, err := template.Render(in)
			require.NoError(t, err)
			var got []string
			for _, u := range result.Objects {
				if u.GetKind() == "ConfigMap" {
					assert.Equal(t, "a-proxy-ca", u.GetName())
					got = append(got, u.GetNamespace())
				}
			}
			assert.Equal(t, test.want, got)
		})
	}
}

// Shows: hub/options-moved
func TestOptionsFollowTheirObjects(t *testing.T) {
	const named = `{apiVersion: v1, kind: ConfigMap, metadata: {name: "cm-{{CLUSTER_NAME}}", namespace: from}}`
	about := func(resource, namespace, name string) workv1.ManifestConfigOption {
		return workv1.ManifestConfigOption{
			ResourceIdentifier: workv1.ResourceIdentifier{Resource: resource, Namespace: namespace, Name: name},
			UpdateStrategy:     &workv1.UpdateStrategy{Type: workv1.UpdateStrategyTypeCreateOnly},
		}
	}
	tests := map[string]struct {
		to         string
		from, want workv1.ManifestConfigOption
	}{
		"nothing moves":                     {"", about("configmaps", "from", "other"), about("configmaps", "from", "other")},
		"a variable in the name":            {"", about("configmaps", "from", "cm-{{CLUSTER_NAME}}"), about("configmaps", "from", "cm-cluster1")},
		"another namespace":                 {"to", about("configmaps", "from", "cm-{{CLUSTER_NAME}}"), about("configmaps", "to", "cm-cluster1")},
		"an object of another kind":         {"to", about("secrets", "from", "cm-{{CLUSTER_NAME}}"), about("secrets", "from", "cm-{{CLUSTER_NAME}}")},
		"an object that the template lacks": {"to", about("configmaps", "to", "cm-cluster1"), about("configmaps", "to", "cm-cluster1")},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			in := inputOf(t, moveTo(test.to), named)
			in.Template.ManifestConfigs = []workv1.ManifestConfigOption{about("pods", "x", "y"), test.from}
			result, err := template.Render(in)
			require.NoError(t, err)
			assert.Equal(t, []workv1.ManifestConfigOption{about("pods", "x", "y"), test.want}, result.ManifestConfigs)
			assert.Equal(t, test.from, in.Template.ManifestConfigs[1], "the template stays as it is")
		})
	}
	result, err := template.Render(inputOf(t, nil, named))
	require.NoError(t, err)
	assert.Empty(t, result.ManifestConfigs)
}

// Shows: hub/marks
func TestMarksAreKept(t *testing.T) {
	const text = `
apiVersion: batch/v1
kind: Job
metadata:
  name: j
  namespace: from
  labels: {addon.open-cluster-management.io/hosted-manifest-location: hosting, own: "x"}
  annotations:
    addon.open-cluster-management.io/deletion-orphan: ""
    addon.open-cluster-management.io/addon-pre-delete: ""
    addon.open-cluster-management.io/hosted-manifest-location: "none"
    own: "{{CLUSTER_NAME}}"
spec: {template: {spec: {containers: [{name: c}]}}}`
	result, err := template.Render(inputOf(t, moveTo("to"), text))
	require.NoError(t, err)
	u := result.Objects[0]
	assert.Equal(t, map[string]string{
		"addon.open-cluster-management.io/deletion-orphan": "", "addon.open-cluster-management.io/addon-pre-delete": "",
		"addon.open-cluster-management.io/hosted-manifest-location": "none", "own": "cluster1",
	}, u.GetAnnotations())
	assert.Equal(t, map[string]string{
		"addon.open-cluster-management.io/hosted-manifest-location": "hosting", "own": "x",
	}, u.GetLabels())
	assert.Equal(t, "to", u.GetNamespace())
}

func TestTheDefaultOfTheDefinitionMovesEverything(t *testing.T) {
	tests := map[string]struct {
		config    func(*addonv1beta1.AddOnDeploymentConfigSpec)
		namespace string
	}{
		"no configuration":                 {nil, "template-ns"},
		"an empty namespace":               {moveTo(""), "template-ns"},
		"the default that is defaulted":    {moveTo("open-cluster-management-agent-addon"), "open-cluster-management-agent-addon"},
		"a namespace of the configuration": {moveTo("elsewhere"), "elsewhere"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			in := inputOf(t, test.config, deploymentText)
			result, err := template.Render(in)
			require.NoError(t, err)
			assert.Equal(t, test.namespace, result.Objects[0].GetNamespace())
			namespace, err := template.Namespace(in)
			require.NoError(t, err)
			assert.Equal(t, test.namespace, namespace, "the agent is where its Deployment is")
		})
	}
}
