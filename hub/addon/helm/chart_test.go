package helm_test

import (
	"context"
	"io/fs"
	"os"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"github.com/spokelet/spokelet/hub/addon"
	"github.com/spokelet/spokelet/hub/addon/helm"
)

// cluster returns a cluster that runs a version of Kubernetes.
func cluster(name, version string) *clusterv1.ManagedCluster {
	c := &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: name}}
	c.Status.Version.Kubernetes = version
	return c
}

// request is a request for add-on hello on cluster c1.
func request() addon.Request {
	return addon.Request{
		Cluster: cluster("c1", "v1.31.2"),
		AddOn: &addonv1beta1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{
			Name: "hello", Namespace: "c1", Annotations: map[string]string{},
		}},
	}
}

// configured adds an AddOnDeploymentConfig to a request.
func configured(t *testing.T, r *addon.Request, spec addonv1beta1.AddOnDeploymentConfigSpec) {
	t.Helper()
	config := addonv1beta1.AddOnDeploymentConfig{Spec: spec}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&config)
	require.NoError(t, err)
	chosen := addon.ChosenConfig{Object: &unstructured.Unstructured{Object: content}}
	chosen.Group, chosen.Resource = addonv1beta1.GroupName, "addondeploymentconfigs"
	r.Choice.Configs = append(r.Choice.Configs, chosen)
}

func wanted(t *testing.T, name string) []*unstructured.Unstructured {
	t.Helper()
	text, err := os.ReadFile("testdata/want/" + name)
	require.NoError(t, err)
	objects, err := addon.ParseYAML(string(text))
	require.NoError(t, err)
	return objects
}

// options describe the add-on of the chart as its author would.
func options(t *testing.T) addon.Options {
	t.Helper()
	chart, err := helm.New(files, "testdata/hello", helm.Options{})
	require.NoError(t, err)
	return addon.Options{
		Name: "hello", Manifests: chart, KubeClient: &addon.KubeClient{}, HostedMode: true,
		InstallNamespace: addon.AgentInstallNamespaceFromDeploymentConfig,
		ConfigGVRs:       []schema.GroupVersionResource{addon.AddOnDeploymentConfigGVR()},
		Values: []addon.ValuesFunc{
			addon.GetAddOnDeploymentConfigValues(addon.ToAddOnNodePlacementValues, addon.ToAddOnProxyConfigValues,
				addon.ToAddOnResourceRequirementsValues, addon.ToAddOnCustomizedVariableValues),
			addon.GetAgentImageValues("image", "quay.io/hello/agent:v1"), addon.GetValuesFromAddonAnnotation,
		},
	}
}

// Shows: hub/library-helm
func TestAChartOnAManagedCluster(t *testing.T) {
	agent, err := addon.New(options(t))
	require.NoError(t, err)
	want := wanted(t, "default.yaml")
	for range 3 {
		rendering, err := agent.Render(t.Context(), request())
		require.NoError(t, err)
		assert.Equal(t, want, rendering.Objects, "and each time the same")
	}
}

// Shows: hub/library-helm
func TestAChartOnAHostingClusterWithAllSettings(t *testing.T) {
	o := options(t)
	o.TrimCRDDescription = true
	agent, err := addon.New(o)
	require.NoError(t, err)
	r := request()
	r.Hosting = cluster("h", "v1.30.1")
	r.AddOn.Annotations["addon.open-cluster-management.io/hosting-cluster-name"] = "h"
	r.AddOn.Annotations["addon.open-cluster-management.io/values"] =
		`{"replicas": 3, "clusterName": "other", "parts": {"enabled": false}}`
	configured(t, &r, addonv1beta1.AddOnDeploymentConfigSpec{
		AgentInstallNamespace: "agents",
		CustomizedVariables: []addonv1beta1.CustomizedVariable{
			{Name: "greeting", Value: "good day"}, {Name: "managedKubeConfigSecret", Value: "external-kubeconfig"},
		},
		NodePlacement: &addonv1beta1.NodePlacement{
			NodeSelector: map[string]string{"disk": "ssd"},
			Tolerations:  []corev1.Toleration{{Key: "spot", Operator: corev1.TolerationOpExists}},
		},
		ProxyConfig: addonv1beta1.ProxyConfig{HTTPSProxy: "https://proxy:3129"},
		Registries:  []addonv1beta1.ImageMirror{{Source: "quay.io", Mirror: "mirror.example.com"}},
		ResourceRequirements: []addonv1beta1.ContainerResourceRequirements{
			{ContainerID: "daemonsets:*:*", Resources: corev1.ResourceRequirements{}},
			{ContainerID: "deployments:*:agent", Resources: corev1.ResourceRequirements{
				Limits: corev1.ResourceList{"memory": resource.MustParse("64Mi")},
			}},
		},
	})
	rendering, err := agent.Render(t.Context(), r)
	require.NoError(t, err)
	assert.Equal(t, wanted(t, "hosted.yaml"), rendering.Objects)
}

// changed is a small chart with these files in it.
func changed(files map[string]string) fs.FS {
	all := fstest.MapFS{
		"chart/Chart.yaml":       {Data: []byte("apiVersion: v2\nname: small\nversion: 1.0.0\n")},
		"chart/templates/a.yaml": {Data: []byte("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n")},
	}
	for name, text := range files {
		all["chart/"+name] = &fstest.MapFile{Data: []byte(text)}
	}
	return all
}

// Shows: hub/library-helm-errors
func TestBadCharts(t *testing.T) {
	tests := map[string]struct {
		files  map[string]string
		values addon.Values
		strict bool
		change func(*addon.Request)
		says   string
		waits  bool
	}{
		"a template that fails names its line": {files: map[string]string{"templates/b.yaml": "\n\na: {{ fail \"no station\" }}"},
			says: "chart small cannot be rendered: execution error at (small/templates/b.yaml:3:6): no station"},
		"a template that is none": {files: map[string]string{"templates/b.yaml": "a: {{ if }}"},
			says: "small/templates/b.yaml:1"},
		"a helper that was not embedded": {files: map[string]string{"templates/b.yaml": `a: {{ include "h" . }}`},
			says: `embedded only by a pattern such as "all:chart"`},
		"a result that is no YAML": {files: map[string]string{"templates/b.yaml": "kind: A\nb: ["},
			says: "small/templates/b.yaml, in the result: the document that begins at line 1"},
		"a value of a wrong type": {files: map[string]string{
			"values.schema.json": `{"type": "object", "properties": {"replicas": {"type": "integer"}}}`,
		}, values: addon.Values{"replicas": "many"}, says: "replicas"},
		"an undefined value of a strict chart": {files: map[string]string{"templates/b.yaml": "a: {{ .Values.nowhere }}"},
			strict: true, says: "nowhere"},
		"an object without a name": {files: map[string]string{"templates/b.yaml": "apiVersion: v1\nkind: ConfigMap\n"},
			says: "metadata.name is required"},
		"two objects of one name": {files: map[string]string{
			"templates/b.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n",
		}, says: "it is the same object as 0"},
		"an object over the limit": {files: map[string]string{
			"templates/b.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: b}\ndata: {x: {{ repeat 500000 \"x\" }}}\n",
		}, says: "object 1 (ConfigMap b): it has 500"},
		"an old cluster": {files: map[string]string{
			"Chart.yaml": "apiVersion: v2\nname: small\nversion: 1.0.0\nkubeVersion: \">=1.32.0-0\"\n",
		}, says: "it needs Kubernetes >=1.32.0-0, and the cluster runs v1.31.2"},
		"a cluster with an unknown version": {change: func(r *addon.Request) { r.Cluster = cluster("c1", "") },
			says: "waiting for cluster c1 to report its Kubernetes version", waits: true},
		"a cluster with a wrong version": {change: func(r *addon.Request) { r.Cluster = cluster("c1", "newest") },
			says: `status.version.kubernetes is "newest"`},
		"a hook that nothing runs": {files: map[string]string{"templates/b.yaml": hooked("Job", "post-delete")},
			says: `Job b has helm.sh/hook "post-delete", and nothing would run it then`},
		"a hook that would run twice": {files: map[string]string{"templates/b.yaml": hooked("Job", "post-install,pre-delete")},
			says: "make it two objects"},
	}
	for sentence, tc := range tests {
		t.Run(sentence, func(t *testing.T) {
			chart, err := helm.New(changed(tc.files), "chart", helm.Options{Strict: tc.strict})
			require.NoError(t, err)
			agent, err := addon.New(addon.Options{Name: "hello", Manifests: chart, Values: values(tc.values)})
			require.NoError(t, err)
			r := request()
			if tc.change != nil {
				tc.change(&r)
			}
			_, err = agent.Render(t.Context(), r)
			require.ErrorContains(t, err, "add-on hello on cluster c1: ")
			require.ErrorContains(t, err, tc.says)
			assert.NotContains(t, err.Error(), "\n")
			assert.Equal(t, tc.waits, addon.IsNotReady(err))
			assert.Equal(t, !tc.waits, addon.IsInvalid(err))
		})
	}
}

func TestFilesThatAreNoChart(t *testing.T) {
	for sentence, tc := range map[string]struct {
		files fs.FS
		says  string
	}{
		"a folder that is not there": {fstest.MapFS{}, "reading the chart in folder chart"},
		"a folder without a chart":   {fstest.MapFS{"chart/a.yaml": {Data: []byte("a: 1")}}, "Chart.yaml"},
		"a chart without a name":     {changed(map[string]string{"Chart.yaml": "apiVersion: v2\nversion: 1.0.0\n"}), "name"},
		"a library": {changed(map[string]string{"Chart.yaml": "apiVersion: v2\nname: l\ntype: library\nversion: 1.0.0\n"}),
			"chart l in folder chart is a library, which has no objects"},
		"values that are no YAML": {changed(map[string]string{"values.yaml": "a: ["}), "values.yaml"},
	} {
		t.Run(sentence, func(t *testing.T) {
			_, err := helm.New(tc.files, "chart", helm.Options{})
			require.ErrorContains(t, err, tc.says)
		})
	}
}

// hooked is an object with a hook of Helm.
func hooked(kind, events string) string {
	return "apiVersion: batch/v1\nkind: " + kind + "\nmetadata:\n  name: b\n  annotations: {helm.sh/hook: \"" + events + "\"}\n"
}

// Shows: hub/library-helm-hooks
func TestHooksOfHelm(t *testing.T) {
	const preDelete = "addon.open-cluster-management.io/addon-pre-delete"
	tests := map[string]struct {
		kind, events   string
		deployed, hook bool
	}{
		"a Job before the installation is deployed":  {"Job", "pre-install", true, false},
		"a Job after it is, too":                     {"Job", "post-install, post-upgrade", true, false},
		"a Job before the deletion is a hook":        {"Job", "pre-delete", true, true},
		"so is a Pod":                                {"Pod", "Pre-Delete,post-delete", true, true},
		"an account for such a Job is deployed":      {"ServiceAccount", "pre-delete", true, false},
		"an account for several events is, too":      {"ServiceAccount", "pre-install,pre-delete", true, false},
		"a test is left out":                         {"Pod", "test", false, false},
		"a test in the former spelling is, too":      {"Pod", "test-success", false, false},
		"a definition in the former way is deployed": {"CustomResourceDefinition", "crd-install", true, false},
	}
	for sentence, tc := range tests {
		t.Run(sentence, func(t *testing.T) {
			chart, err := helm.New(changed(map[string]string{"templates/b.yaml": hooked(tc.kind, tc.events)}), "chart",
				helm.Options{})
			require.NoError(t, err)
			agent, err := addon.New(addon.Options{Name: "hello", Manifests: chart})
			require.NoError(t, err)
			rendering, err := agent.Render(t.Context(), request())
			require.NoError(t, err)
			deployed, hook := false, false
			for _, object := range rendering.Objects {
				if object.GetName() == "b" {
					deployed = true
					_, hook = object.GetAnnotations()[preDelete]
				}
			}
			assert.Equal(t, tc.deployed, deployed)
			assert.Equal(t, tc.hook, hook)
		})
	}
}

// values are those of one function.
func values(fixed addon.Values) []addon.ValuesFunc {
	return []addon.ValuesFunc{addon.GetAddOnDeploymentConfigValues(), constant(fixed)}
}

// A template that changes a value of the chart changes it for itself alone.
func TestTemplatesDoNotChangeTheChart(t *testing.T) {
	chart, err := helm.New(changed(map[string]string{
		"values.yaml": "m: {count: 0}\n",
		"templates/b.yaml": "{{ $_ := set .Values.m \"count\" (add1 .Values.m.count) }}apiVersion: v1\nkind: ConfigMap\n" +
			"metadata: {name: b}\ndata: {count: \"{{ .Values.m.count }}\"}\n",
	}), "chart", helm.Options{})
	require.NoError(t, err)
	agent, err := addon.New(addon.Options{Name: "hello", Manifests: chart})
	require.NoError(t, err)
	for range 3 {
		rendering, err := agent.Render(t.Context(), request())
		require.NoError(t, err)
		raw, err := rendering.Objects[1].MarshalJSON()
		require.NoError(t, err)
		assert.Contains(t, string(raw), `"count":"1"`)
	}
}

// constant returns a function with fixed values.
func constant(fixed addon.Values) addon.ValuesFunc {
	return func(context.Context, addon.Request) (addon.Values, error) { return fixed, nil }
}
