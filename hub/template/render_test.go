package template_test

import (
	"embed"
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	"sigs.k8s.io/yaml"

	"github.com/spokelet/spokelet/hub/addon"
	"github.com/spokelet/spokelet/hub/template"
)

//go:embed testdata
var testdata embed.FS

// object decodes a YAML document.
func object(tb testing.TB, text string) map[string]any {
	tb.Helper()
	raw, err := yaml.YAMLToJSON([]byte(text))
	require.NoError(tb, err)
	u := &unstructured.Unstructured{}
	require.NoError(tb, json.Unmarshal(raw, &u.Object))
	normal, err := normalise(u.Object)
	require.NoError(tb, err)
	return normal
}

// normalise turns the numbers of plain JSON into those of unstructured objects.
func normalise(content map[string]any) (map[string]any, error) {
	raw, err := json.Marshal(map[string]any{"apiVersion": "v1", "kind": "List", "content": content})
	if err != nil {
		return nil, err
	}
	u := &unstructured.Unstructured{}
	if err := u.UnmarshalJSON(raw); err != nil {
		return nil, err
	}
	content, _, err = unstructured.NestedMap(u.Object, "content")
	return content, err
}

// file reads an object of testdata.
func file(t *testing.T, name string) *unstructured.Unstructured {
	t.Helper()
	raw, err := testdata.ReadFile("testdata/" + name)
	require.NoError(t, err)
	return &unstructured.Unstructured{Object: object(t, string(raw))}
}

func hello(t *testing.T) template.Input {
	t.Helper()
	read, err := template.ReadTemplate(file(t, "hello-template.yaml"))
	require.NoError(t, err)
	config, _, err := template.ReadConfig(file(t, "hello-template-deploy-config.yaml"))
	require.NoError(t, err)
	return template.Input{
		Template: read, Config: config, AddOn: "hello-template",
		Cluster: &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: "cluster1"}},
	}
}

// inputOf makes an input of manifests; edit changes its configuration.
func inputOf(t *testing.T, edit func(*addonv1beta1.AddOnDeploymentConfigSpec), manifests ...string) template.Input {
	t.Helper()
	in := template.Input{
		Template: &template.Template{Name: "t"}, AddOn: "a",
		Cluster: &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: "cluster1"}},
	}
	for _, manifest := range manifests {
		in.Template.Manifests = append(in.Template.Manifests, object(t, manifest))
	}
	if edit != nil {
		in.Config = &addonv1beta1.AddOnDeploymentConfig{ObjectMeta: metav1.ObjectMeta{Namespace: "configs", Name: "config"}}
		edit(&in.Config.Spec)
	}
	return in
}

// at returns what stands at a path of an object.
func at(t *testing.T, u *unstructured.Unstructured, fields ...any) any {
	t.Helper()
	var here any = u.Object
	for _, field := range fields {
		switch key := field.(type) {
		case string:
			parent, ok := here.(map[string]any)
			require.True(t, ok, "%v in %v", field, fields)
			here = parent[key]
		case int:
			list, ok := here.([]any)
			require.True(t, ok, "%v in %v", field, fields)
			require.Greater(t, len(list), key)
			here = list[key]
		}
	}
	return here
}

func container(t *testing.T, u *unstructured.Unstructured, rest ...any) any {
	t.Helper()
	return at(t, u, append([]any{"spec", "template", "spec", "containers", 0}, rest...)...)
}

func pod(t *testing.T, u *unstructured.Unstructured, rest ...any) any {
	t.Helper()
	return at(t, u, append([]any{"spec", "template", "spec"}, rest...)...)
}

func env(name, value string) map[string]any { return map[string]any{"name": name, "value": value} }

func TestHelloTemplateOfTheGuide(t *testing.T) {
	in := hello(t)
	result, err := template.Render(in)
	require.NoError(t, err)
	require.Len(t, result.Objects, 3)
	deployment, account, binding := result.Objects[0], result.Objects[1], result.Objects[2]

	assert.Equal(t, []any{
		"/helloworld", "agent", "--cluster-name=cluster1", "--addon-namespace=open-cluster-management-agent-addon",
		"--addon-name=hello-template", "--hub-kubeconfig=/managed/hub-kubeconfig/kubeconfig", "--v=2",
	}, container(t, deployment, "args"))
	assert.Equal(t, []any{
		env("HUB_KUBECONFIG", "/managed/hub-kubeconfig/kubeconfig"), env("CLUSTER_NAME", "cluster1"),
	}, container(t, deployment, "env"))
	assert.Equal(t, []any{
		map[string]any{"name": "hub-kubeconfig", "mountPath": "/managed/hub-kubeconfig"},
		map[string]any{"name": "cert-example-com-signer-test", "mountPath": "/managed/example.com-signer-test"},
	}, container(t, deployment, "volumeMounts"))
	assert.Equal(t, []any{
		map[string]any{"name": "hub-kubeconfig", "secret": map[string]any{"secretName": "hello-template-hub-kubeconfig"}},
		map[string]any{"name": "cert-example-com-signer-test", "secret": map[string]any{
			"secretName": "hello-template-example.com-signer-test-client-cert",
		}},
	}, pod(t, deployment, "volumes"))
	assert.Equal(t, int64(1), at(t, deployment, "spec", "replicas"))
	assert.NotContains(t, deployment.Object, "status", "nothing is invented")
	assert.NotContains(t, at(t, deployment, "metadata"), "creationTimestamp")
	assert.Equal(t, in.Template.Manifests[1], account.Object)
	assert.Equal(t, in.Template.Manifests[2], binding.Object)

	namespace, err := template.Namespace(in)
	require.NoError(t, err)
	assert.Equal(t, "open-cluster-management-agent-addon", namespace)
}

func TestRenderIsDeterministicAndPure(t *testing.T) {
	in := hello(t)
	before, err := json.Marshal(in.Template.Manifests)
	require.NoError(t, err)
	first, err := template.Render(in)
	require.NoError(t, err)
	for range 20 {
		again, err := template.Render(in)
		require.NoError(t, err)
		require.Equal(t, first, again)
	}
	first.Objects[1].SetAnnotations(map[string]string{"changed": "later"})
	after, err := json.Marshal(in.Template.Manifests)
	require.NoError(t, err)
	assert.Equal(t, string(before), string(after), "the template shares nothing with a rendering")
}

const deploymentText = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: agent, namespace: template-ns}
spec:
  template:
    spec:
      futureField: {kept: true}
      initContainers: [{name: init, image: quay.io/ocm/init:v1}]
      containers: [{name: main, image: quay.io/ocm/agent:v1, env: [{name: OWN, value: own}]}]
`

const daemonSetText = `
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: watcher, namespace: daemon-ns}
spec: {template: {spec: {containers: [{name: main, image: quay.io/ocm/watcher:v1}]}}}
`

// Shows: hub/decoration
func TestDecorations(t *testing.T) {
	tests := map[string]struct {
		config func(*addonv1beta1.AddOnDeploymentConfigSpec)
		change func(*template.Input)
		check  func(t *testing.T, objects []*unstructured.Unstructured)
	}{
		"without a configuration only the variables are added, after those of the author": {
			check: func(t *testing.T, objects []*unstructured.Unstructured) {
				t.Helper()
				assert.Equal(t, []any{env("OWN", "own"), env("CLUSTER_NAME", "cluster1")}, container(t, objects[0], "env"))
				assert.Equal(t, map[string]any{"kept": true}, pod(t, objects[0], "futureField"))
				assert.NotContains(t, pod(t, objects[0]), "volumes")
			},
		},
		"customized variables are no environment": {
			config: func(s *addonv1beta1.AddOnDeploymentConfigSpec) {
				s.CustomizedVariables = []addonv1beta1.CustomizedVariable{{Name: "LOG_LEVEL", Value: "4"}}
			},
			check: func(t *testing.T, objects []*unstructured.Unstructured) {
				t.Helper()
				assert.Equal(t, []any{env("CLUSTER_NAME", "cluster1")}, container(t, objects[1], "env"))
			},
		},
		"the install namespace is a variable, and CLUSTER_NAME cannot be overridden": {
			config: func(s *addonv1beta1.AddOnDeploymentConfigSpec) {
				s.AgentInstallNamespace = "elsewhere"
				s.CustomizedVariables = []addonv1beta1.CustomizedVariable{
					{Name: "CLUSTER_NAME", Value: "other"}, {Name: "INSTALL_NAMESPACE", Value: "other"},
				}
			},
			check: func(t *testing.T, objects []*unstructured.Unstructured) {
				t.Helper()
				assert.Equal(t, []any{env("CLUSTER_NAME", "cluster1"), env("INSTALL_NAMESPACE", "elsewhere")},
					container(t, objects[1], "env"))
				assert.Equal(t, "elsewhere", objects[0].GetNamespace())
				assert.Equal(t, "elsewhere", objects[1].GetNamespace())
			},
		},
		"tolerations need no node selector": {
			config: func(s *addonv1beta1.AddOnDeploymentConfigSpec) {
				s.NodePlacement = &addonv1beta1.NodePlacement{
					Tolerations: []corev1.Toleration{{Key: "k", Operator: corev1.TolerationOpExists}},
				}
			},
			check: func(t *testing.T, objects []*unstructured.Unstructured) {
				t.Helper()
				want := []any{map[string]any{"key": "k", "operator": "Exists"}}
				assert.Equal(t, want, pod(t, objects[0], "tolerations"))
				assert.Equal(t, want, pod(t, objects[1], "tolerations"))
				assert.NotContains(t, pod(t, objects[0]), "nodeSelector")
			},
		},
		"a node selector replaces that of the author": {
			config: func(s *addonv1beta1.AddOnDeploymentConfigSpec) {
				s.NodePlacement = &addonv1beta1.NodePlacement{NodeSelector: map[string]string{"disk": "ssd"}}
			},
			check: func(t *testing.T, objects []*unstructured.Unstructured) {
				t.Helper()
				assert.Equal(t, map[string]any{"disk": "ssd"}, pod(t, objects[0], "nodeSelector"))
			},
		},
		"images come from the mirrors of the cluster, those of init containers too": {
			change: func(in *template.Input) {
				in.Cluster.Annotations = map[string]string{
					"open-cluster-management.io/image-registries": `{"registries":[{"source":"quay.io/ocm/","mirror":"m.example.com/x/"}]}`,
				}
			},
			check: func(t *testing.T, objects []*unstructured.Unstructured) {
				t.Helper()
				assert.Equal(t, "m.example.com/x/agent:v1", container(t, objects[0], "image"))
				assert.Equal(t, "m.example.com/x/init:v1", pod(t, objects[0], "initContainers", 0, "image"))
				assert.Equal(t, "m.example.com/x/watcher:v1", container(t, objects[1], "image"))
			},
		},
		"mirrors of the configuration replace those of the cluster": {
			config: func(s *addonv1beta1.AddOnDeploymentConfigSpec) {
				s.Registries = []addonv1beta1.ImageMirror{
					{Source: "quay.io", Mirror: "first"}, {Source: "quay.io/ocm", Mirror: "last"}, {Source: "other", Mirror: "no"},
				}
			},
			change: func(in *template.Input) {
				in.Cluster.Annotations = map[string]string{"open-cluster-management.io/image-registries": `not read`}
			},
			check: func(t *testing.T, objects []*unstructured.Unstructured) {
				t.Helper()
				assert.Equal(t, "last/agent:v1", container(t, objects[0], "image"))
			},
		},
		"a mirror without a source takes every image": {
			config: func(s *addonv1beta1.AddOnDeploymentConfigSpec) {
				s.Registries = []addonv1beta1.ImageMirror{{Mirror: "m.example.com/all"}}
			},
			check: func(t *testing.T, objects []*unstructured.Unstructured) {
				t.Helper()
				assert.Equal(t, "m.example.com/all/agent:v1", container(t, objects[0], "image"))
			},
		},
		"proxy settings come in both spellings, with the certificate authorities": {
			config: func(s *addonv1beta1.AddOnDeploymentConfigSpec) {
				s.AgentInstallNamespace = "elsewhere"
				s.ProxyConfig = addonv1beta1.ProxyConfig{
					HTTPProxy: "http://p", HTTPSProxy: "https://p", NoProxy: "10.0.0.0/8", CABundle: []byte("bundle"),
				}
			},
			check: func(t *testing.T, objects []*unstructured.Unstructured) {
				t.Helper()
				assert.Equal(t, []any{
					env("CLUSTER_NAME", "cluster1"), env("INSTALL_NAMESPACE", "elsewhere"),
					env("HTTP_PROXY", "http://p"), env("http_proxy", "http://p"),
					env("HTTPS_PROXY", "https://p"), env("https_proxy", "https://p"),
					env("NO_PROXY", "10.0.0.0/8"), env("no_proxy", "10.0.0.0/8"),
					env("CA_BUNDLE_FILE_PATH", "/managed/proxy-ca/ca-bundle.crt"),
				}, container(t, objects[1], "env"))
				assert.Equal(t, []any{map[string]any{
					"name": "proxy-ca-bundle", "configMap": map[string]any{"name": "a-proxy-ca"},
				}}, pod(t, objects[1], "volumes"))
				require.Len(t, objects, 3)
				ca := objects[2]
				assert.Equal(t, "ConfigMap", ca.GetKind())
				assert.Equal(t, "elsewhere/a-proxy-ca", ca.GetNamespace()+"/"+ca.GetName())
				assert.Equal(t, map[string]any{"ca-bundle.crt": "bundle"}, ca.Object["data"])
			},
		},
		"certificate authorities alone are only shipped": {
			config: func(s *addonv1beta1.AddOnDeploymentConfigSpec) { s.ProxyConfig.CABundle = []byte("bundle") },
			check: func(t *testing.T, objects []*unstructured.Unstructured) {
				t.Helper()
				require.Len(t, objects, 3)
				assert.Equal(t, "open-cluster-management-agent-addon", objects[2].GetNamespace())
				assert.NotContains(t, pod(t, objects[0]), "volumes")
			},
		},
		"the last rule that names a container sets its resources": {
			config: func(s *addonv1beta1.AddOnDeploymentConfigSpec) {
				s.ResourceRequirements = []addonv1beta1.ContainerResourceRequirements{
					{ContainerID: "*:*:*", Resources: memory("10Mi")},
					{ContainerID: "deployments:agent:main", Resources: memory("20Mi")},
					{ContainerID: "deployments:other:*", Resources: memory("30Mi")},
				}
			},
			check: func(t *testing.T, objects []*unstructured.Unstructured) {
				t.Helper()
				assert.Equal(t, map[string]any{"requests": map[string]any{"memory": "20Mi"}},
					container(t, objects[0], "resources"))
				assert.Equal(t, map[string]any{"requests": map[string]any{"memory": "10Mi"}},
					container(t, objects[1], "resources"))
			},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			in := inputOf(t, test.config, deploymentText, daemonSetText)
			if test.change != nil {
				test.change(&in)
			}
			result, err := template.Render(in)
			require.NoError(t, err)
			test.check(t, result.Objects)
		})
	}
}

func memory(amount string) corev1.ResourceRequirements {
	return corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse(amount)}}
}

// Shows: hub/moved
func TestMovingToTheInstallNamespace(t *testing.T) {
	move := func(s *addonv1beta1.AddOnDeploymentConfigSpec) { s.AgentInstallNamespace = "to" }
	tests := map[string]struct {
		manifest string
		want     string
	}{
		"an object with a namespace moves": {
			manifest: `{apiVersion: v1, kind: ConfigMap, metadata: {name: thing, namespace: from}}`,
			want:     `{apiVersion: v1, kind: ConfigMap, metadata: {name: thing, namespace: to}}`,
		},
		"an object without one stays": {
			manifest: `{apiVersion: v1, kind: ConfigMap, metadata: {name: thing}}`,
			want:     `{apiVersion: v1, kind: ConfigMap, metadata: {name: thing}}`,
		},
		"an object of Kubernetes stays": {
			manifest: `{apiVersion: v1, kind: ConfigMap, metadata: {name: thing, namespace: kube-system}}`,
			want:     `{apiVersion: v1, kind: ConfigMap, metadata: {name: thing, namespace: kube-system}}`,
		},
		"a namespace is renamed": {
			manifest: `{apiVersion: v1, kind: Namespace, metadata: {name: from}}`,
			want:     `{apiVersion: v1, kind: Namespace, metadata: {name: to}}`,
		},
		"service accounts of a binding move, users do not, and none of Kubernetes": {
			manifest: `
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: thing}
subjects:
- {kind: ServiceAccount, name: sa, namespace: from}
- {kind: User, name: u}
- {kind: ServiceAccount, name: controller, namespace: kube-system}`,
			want: `
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: thing}
subjects:
- {kind: ServiceAccount, name: sa, namespace: to}
- {kind: User, name: u}
- {kind: ServiceAccount, name: controller, namespace: kube-system}`,
		},
		"a binding without subjects is no problem": {
			manifest: `{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: thing, namespace: from}}`,
			want:     `{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: thing, namespace: to}}`,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			result, err := template.Render(inputOf(t, move, test.manifest))
			require.NoError(t, err)
			require.Len(t, result.Objects, 1)
			assert.Equal(t, object(t, test.want), result.Objects[0].Object)
		})
	}
	result, err := template.Render(inputOf(t, move,
		`{apiVersion: v1, kind: Namespace, metadata: {name: one}}`, `{apiVersion: v1, kind: Namespace, metadata: {name: two}}`))
	require.NoError(t, err)
	assert.Len(t, result.Objects, 1, "namespaces that move to one name become one")
}

// Shows: hub/namespace-chosen
func TestNamespace(t *testing.T) {
	explicit := func(s *addonv1beta1.AddOnDeploymentConfigSpec) { s.AgentInstallNamespace = "explicit" }
	empty := func(s *addonv1beta1.AddOnDeploymentConfigSpec) {
		s.CustomizedVariables = []addonv1beta1.CustomizedVariable{{Name: "WHERE", Value: "there"}}
	}
	tests := map[string]struct {
		config    func(*addonv1beta1.AddOnDeploymentConfigSpec)
		manifests []string
		want      string
	}{
		"the configuration decides":          {explicit, []string{deploymentText}, "explicit"},
		"else the first Deployment":          {empty, []string{daemonSetText, deploymentText}, "template-ns"},
		"else the first DaemonSet":           {nil, []string{daemonSetText}, "daemon-ns"},
		"else the default":                   {nil, nil, "open-cluster-management-agent-addon"},
		"a Deployment without one: default":  {nil, []string{`{apiVersion: apps/v1, kind: Deployment, metadata: {name: thing}}`}, "open-cluster-management-agent-addon"},
		"variables in it are replaced there": {empty, []string{strings.ReplaceAll(deploymentText, "template-ns", `"{{WHERE}}-{{CLUSTER_NAME}}"`)}, "there-cluster1"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := template.Namespace(inputOf(t, test.config, test.manifests...))
			require.NoError(t, err)
			assert.Equal(t, test.want, got)
		})
	}
	_, err := template.Namespace(inputOf(t, nil, strings.ReplaceAll(deploymentText, "template-ns", `"{{WHERE}}"`)))
	require.Error(t, err)
	assert.Equal(t, "AddOnTemplate t cannot be rendered: manifest 0 (Deployment {{WHERE}}/agent), .metadata.namespace: "+
		"variable WHERE has no value. The add-on uses no AddOnDeploymentConfig: create one that defines the missing "+
		"variables in spec.customizedVariables and name it as a config of the add-on. Built in are CLUSTER_NAME.", err.Error())
	assert.True(t, addon.IsInvalid(err))
}

func TestEveryProblemIsToldWithItsPlace(t *testing.T) {
	none := func(*addonv1beta1.AddOnDeploymentConfigSpec) {}
	tests := map[string]struct {
		manifests []string
		want      string
	}{
		"several missing variables": {
			manifests: []string{
				`{apiVersion: v1, kind: ConfigMap, metadata: {name: thing, namespace: ns}, data: {a: "{{ONE}} {{TWO}}", "b.c/d": "{{ONE}}"}}`,
				`{apiVersion: v1, kind: ConfigMap, metadata: {name: "x{{ ONE }}"}, list: [["{{A-B}}"]], "{{KEY}}": 1}`,
			},
			want: "AddOnTemplate t cannot be rendered: " +
				"manifest 0 (ConfigMap ns/thing), .data.a: variable ONE has no value; " +
				"manifest 0 (ConfigMap ns/thing), .data.a: variable TWO has no value; " +
				`manifest 0 (ConfigMap ns/thing), .data["b.c/d"]: variable ONE has no value; ` +
				`manifest 1 (ConfigMap x{{ ONE }}), .list[0][0]: {{A-B}} is no variable: a name has only letters, digits and _, and does not start with a digit; two braces that start no variable are written {{"{{"}}; ` +
				`manifest 1 (ConfigMap x{{ ONE }}), .metadata.name: variable " ONE " has no value: write {{ONE}}, without blanks; ` +
				`manifest 1 (ConfigMap x{{ ONE }}), ["{{KEY}}"]: variable KEY has no value. ` +
				"Define the missing variables in spec.customizedVariables of AddOnDeploymentConfig configs/config, or correct " +
				"their names in the template. Built in are CLUSTER_NAME.",
		},
		"an object without an identity": {
			manifests: []string{`{metadata: {namespace: ns}}`},
			want: "AddOnTemplate t cannot be rendered: manifest 0 (no kind ns/), .apiVersion: it is required; " +
				"manifest 0 (no kind ns/), .kind: it is required; manifest 0 (no kind ns/), .metadata.name: it is required",
		},
		"one object twice": {
			manifests: []string{
				`{apiVersion: v1, kind: ConfigMap, metadata: {name: thing}}`, `{apiVersion: v1, kind: ConfigMap, metadata: {name: thing}}`,
			},
			want: "AddOnTemplate t cannot be rendered: manifest 1 (ConfigMap thing): it is the same object as manifest 0; " +
				"remove one of the two",
		},
		"keys that become the same": {
			manifests: []string{`{apiVersion: v1, kind: ConfigMap, metadata: {name: thing}, data: {cluster1: a, "{{CLUSTER_NAME}}": b}}`},
			want: `AddOnTemplate t cannot be rendered: manifest 0 (ConfigMap thing), .data.cluster1: its key becomes "cluster1", ` +
				"which stands there already",
		},
		"a Deployment without containers": {
			manifests: []string{`{apiVersion: apps/v1, kind: Deployment, metadata: {name: thing}, spec: {template: {spec: {}}}}`},
			want: "AddOnTemplate t cannot be rendered: manifest 0 (Deployment thing), .spec.template.spec.containers: " +
				"it must be a list of objects that is not empty",
		},
		"a Deployment without a pod template": {
			manifests: []string{`{apiVersion: apps/v1, kind: Deployment, metadata: {name: thing}}`},
			want: "AddOnTemplate t cannot be rendered: manifest 0 (Deployment thing), .spec.template.spec: " +
				"it must be an object",
		},
		"replicas that are no number": {
			manifests: []string{strings.ReplaceAll(deploymentText, "spec:\n  template", "spec:\n  replicas: many\n  template")},
			want: `AddOnTemplate t cannot be rendered: manifest 0 (Deployment template-ns/agent), .spec.replicas: "many" is no ` +
				"whole number",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := template.Render(inputOf(t, none, test.manifests...))
			require.Error(t, err)
			got := err.Error()
			if name == "keys that become the same" {
				// Which of the two keys comes first is no matter.
				got = strings.Replace(got, `.data["{{CLUSTER_NAME}}"]`, ".data.cluster1", 1)
			}
			assert.Equal(t, test.want, got)
			assert.True(t, addon.IsInvalid(err))
			var problems *template.ProblemsError
			assert.ErrorAs(t, err, &problems)
		})
	}
}

func TestOtherBadInput(t *testing.T) {
	t.Run("an annotation with mirrors that is no JSON", func(t *testing.T) {
		in := inputOf(t, nil, deploymentText)
		in.Cluster.Annotations = map[string]string{"open-cluster-management.io/image-registries": `{`}
		_, err := template.Render(in)
		require.Error(t, err)
		assert.True(t, addon.IsInvalid(err))
		assert.Contains(t, err.Error(), "annotation open-cluster-management.io/image-registries of ManagedCluster cluster1")
	})
	t.Run("an unknown health probe", func(t *testing.T) {
		u := file(t, "hello-template.yaml")
		u.SetAnnotations(map[string]string{"addon.spokelet.io/health-probe": "Pulse"})
		read, err := template.ReadTemplate(u)
		require.NoError(t, err)
		in := hello(t)
		in.Template = read
		_, err = template.Render(in)
		require.Error(t, err)
		assert.True(t, addon.IsInvalid(err))
		assert.Contains(t, err.Error(), `AddOnTemplate hello-template: the value "Pulse" of annotation addon.spokelet.io/health-probe`)
	})
	t.Run("more problems than a person reads", func(t *testing.T) {
		many := `{apiVersion: v1, kind: ConfigMap, metadata: {name: thing}, data: {a: "` + strings.Repeat("{{X}}", 30) + `"}}`
		_, err := template.Render(inputOf(t, nil, many))
		require.Error(t, err)
		assert.Contains(t, err.Error(), "; and 10 more. The add-on uses no AddOnDeploymentConfig")
	})
	t.Run("a template that is none", func(t *testing.T) {
		u := file(t, "hello-template.yaml")
		require.NoError(t, unstructured.SetNestedField(u.Object, "text", "spec", "registration"))
		_, err := template.ReadTemplate(u)
		require.Error(t, err)
		assert.True(t, addon.IsInvalid(err))
	})
}

func TestReplicasMayBeAVariable(t *testing.T) {
	in := inputOf(t, func(s *addonv1beta1.AddOnDeploymentConfigSpec) {
		s.CustomizedVariables = []addonv1beta1.CustomizedVariable{{Name: "REPLICA_COUNT", Value: "3"}}
	}, strings.ReplaceAll(deploymentText, "spec:\n  template", "spec:\n  replicas: \"{{REPLICA_COUNT}}\"\n  template"))
	result, err := template.Render(in)
	require.NoError(t, err)
	assert.Equal(t, int64(3), at(t, result.Objects[0], "spec", "replicas"))
}

func TestVolumesOfTheAuthorStay(t *testing.T) {
	in := hello(t)
	in.Template.Registration = append(in.Template.Registration, in.Template.Registration[0])
	result, err := template.Render(in)
	require.NoError(t, err)
	assert.Len(t, pod(t, result.Objects[0], "volumes"), 2, "two entries of type KubeClient are one volume")
	assert.Len(t, container(t, result.Objects[0], "volumeMounts"), 2)
}

func TestLongSignerMakesAVolumeNameThatKubernetesTakes(t *testing.T) {
	in := hello(t)
	long := "example.com/" + strings.Repeat("s", 80)
	in.Template.Registration[1].CustomSigner.SignerName = long
	result, err := template.Render(in)
	require.NoError(t, err)
	name, _ := pod(t, result.Objects[0], "volumes", 1, "name").(string)
	assert.Len(t, name, 63)
	assert.Equal(t, name, container(t, result.Objects[0], "volumeMounts", 1, "name"))
}

func BenchmarkRender(b *testing.B) {
	u := &unstructured.Unstructured{}
	raw, err := testdata.ReadFile("testdata/hello-template.yaml")
	require.NoError(b, err)
	require.NoError(b, yaml.Unmarshal(raw, &u.Object))
	cluster := &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: "cluster1"}}
	config := &addonv1beta1.AddOnDeploymentConfig{}
	config.Spec.CustomizedVariables = []addonv1beta1.CustomizedVariable{{Name: "LOG_LEVEL", Value: "2"}}
	b.ReportAllocs()
	for b.Loop() {
		read, err := template.ReadTemplate(u)
		require.NoError(b, err)
		_, err = template.Render(template.Input{Template: read, Config: config, Cluster: cluster, AddOn: "hello-template"})
		require.NoError(b, err)
	}
}
