package helm_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/spokelet/spokelet/hub/addon"
	"github.com/spokelet/spokelet/hub/addon/helm"
)

// printed returns what a template prints.
func printed(t *testing.T, template string, given addon.Values, change func(*addon.Request)) (any, error) {
	t.Helper()
	chart, err := helm.New(changed(map[string]string{
		"values.yaml":      "labels: {own: \"1\"}\nlist: [x]\nname: null\nlevel: 1\nnothing: null\n",
		"templates/a.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {x: {{ " + template + " | quote }}}\n",
	}), "chart", helm.Options{})
	require.NoError(t, err)
	agent, err := addon.New(addon.Options{
		Name: "hello", Manifests: chart, HostedMode: true, KubeClient: &addon.KubeClient{}, Values: values(given),
	})
	require.NoError(t, err)
	r := request()
	if change != nil {
		change(&r)
	}
	rendering, err := agent.Render(t.Context(), r)
	if err != nil {
		return nil, err
	}
	data, _ := rendering.Objects[0].Object["data"].(map[string]any)
	return data["x"], nil
}

// Shows: hub/library-helm-values
func TestValuesOfACharts(t *testing.T) {
	type station struct {
		Height int               `json:"height"`
		Labels map[string]string `json:"labels"`
	}
	hosted := func(r *addon.Request) {
		r.Hosting = cluster("h", "v1.30.1-vendor.4")
		r.AddOn.Annotations["addon.open-cluster-management.io/hosting-cluster-name"] = "h"
	}
	tests := map[string]struct {
		template string
		values   addon.Values
		change   func(*addon.Request)
		want     string
	}{
		"the release has the name of the add-on":      {".Release.Name", nil, nil, "hello"},
		"and the namespace of the agent":              {".Release.Namespace", nil, nil, "open-cluster-management-agent-addon"},
		"it is neither installed nor upgraded":        {`printf "%t,%t" .Release.IsInstall .Release.IsUpgrade`, nil, nil, "false,false"},
		"the version of Kubernetes is the cluster's":  {".Capabilities.KubeVersion.Version", nil, nil, "v1.31.2"},
		"its parts are, too":                          {`print .Capabilities.KubeVersion.Major "." .Capabilities.KubeVersion.Minor`, nil, nil, "1.31"},
		"no API versions are known":                   {`.Capabilities.APIVersions.Has "apps/v1"`, nil, nil, "false"},
		"nothing can be looked up":                    {`lookup "v1" "Secret" "a" "b" | len`, nil, nil, "0"},
		"what a distribution adds stays":              {".Capabilities.KubeVersion.Version", nil, func(r *addon.Request) { r.Cluster = cluster("c1", "v1.31.2-gke.7+a") }, "v1.31.2-gke.7+a"},
		"a hosting cluster has capabilities":          {".Values.hostingClusterCapabilities.KubeVersion.Version", nil, hosted, "v1.30.1-vendor.4"},
		"without one they are empty":                  {".Values.hostingClusterCapabilities.KubeVersion.Version", nil, nil, ""},
		"a hosted agent knows its mode":               {".Values.installMode", nil, hosted, "Hosted"},
		"nobody overrides the mode":                   {".Values.installMode", addon.Values{"installMode": "Hosted"}, nil, "Default"},
		"nor the name of the cluster":                 {".Values.clusterName", addon.Values{"clusterName": "c2"}, nil, "c1"},
		"nor the namespace":                           {".Values.addonInstallNamespace", addon.Values{"addonInstallNamespace": "x"}, nil, "open-cluster-management-agent-addon"},
		"Secrets have names":                          {`print .Values.hubKubeConfigSecret " " .Values.managedKubeConfigSecret`, nil, nil, "hello-hub-kubeconfig hello-managed-kubeconfig"},
		"which the author overrides":                  {".Values.managedKubeConfigSecret", addon.Values{"managedKubeConfigSecret": "own"}, nil, "own"},
		"capabilities may be overridden":              {".Values.hostingClusterCapabilities.note", addon.Values{"hostingClusterCapabilities": addon.Values{"note": "n"}}, nil, "n"},
		"maps of Go are merged with those of a chart": {"toJson .Values.labels", addon.Values{"labels": map[string]string{"a": "b"}}, nil, `{"a":"b","own":"1"}`},
		"lists of Go are lists":                       {`.Values.list | reverse | join ","`, addon.Values{"list": []string{"a", "b"}}, nil, "b,a"},
		"structs are what their JSON is":              {"toJson .Values.station", addon.Values{"station": station{5, map[string]string{"a": "b"}}}, nil, `{"height":5,"labels":{"a":"b"}}`},
		"types of Kubernetes are, too": {`(index .Values.tolerations 0).key`, addon.Values{"tolerations": []corev1.Toleration{{Key: "k"}}},
			nil, "k"},
		"numbers stay whole":                {".Values.level", addon.Values{"level": 10000000}, nil, "10000000"},
		"null removes a value of the chart": {`hasKey .Values "level"`, addon.Values{"level": nil}, nil, "false"},
		"what is null may be set":           {".Values.name", addon.Values{"name": "n"}, nil, "n"},
		"what is null has no value":         {`.Values.nothing | default "none"`, nil, nil, "none"},
	}
	for sentence, tc := range tests {
		t.Run(sentence, func(t *testing.T) {
			got, err := printed(t, tc.template, tc.values, tc.change)
			require.NoError(t, err)
			assert.Equal(t, tc.want, got)
		})
	}
}

// Shows: hub/library-helm-errors
func TestAValueThatNoFileCanHaveIsAnError(t *testing.T) {
	_, err := printed(t, ".Values.f", addon.Values{"f": func() {}}, nil)
	require.ErrorContains(t, err, "add-on hello on cluster c1: the values for a chart must be such as JSON has")
	assert.True(t, addon.IsInvalid(err))
}

// Shows: hub/library-helm
func TestFilesAndTheOrderOfObjects(t *testing.T) {
	object := func(kind, name string) string {
		return "apiVersion: v1\nkind: " + kind + "\nmetadata: {name: " + name + "}\n"
	}
	tests := map[string]struct {
		files map[string]string
		want  []string
	}{
		"a file may have several objects": {map[string]string{
			"templates/b.yaml": object("ConfigMap", "b") + "---\n" + object("ConfigMap", "c") + "---\n# nothing\n---\n",
		}, []string{"ConfigMap a", "ConfigMap b", "ConfigMap c"}},
		"a file may be empty": {map[string]string{"templates/b.yaml": "{{ if .Values.nowhere }}" + object("Pod", "b") + "{{ end }}"},
			[]string{"ConfigMap a"}},
		"kinds come in the order of an installation, and unknown ones last": {map[string]string{
			"templates/0.yaml": object("Zebra", "z") + "---\n" + object("Deployment", "d") + "---\n" + object("Antelope", "a"),
			"templates/b.yaml": object("Namespace", "home") + "---\n" + object("ServiceAccount", "s"),
			"crds/one.yaml":    object("CustomResourceDefinition", "one") + "---\n" + object("CustomResourceDefinition", "two"),
		}, []string{
			"CustomResourceDefinition one", "CustomResourceDefinition two", "Namespace home", "ServiceAccount s", "ConfigMap a",
			"Deployment d", "Antelope a", "Zebra z",
		}},
		"a dependency may be left out": {map[string]string{
			"Chart.yaml": "apiVersion: v2\nname: small\nversion: 1.0.0\ndependencies:\n" +
				"  - {name: part, version: 1.0.0, condition: part.enabled}\n",
			"values.yaml": "part: {enabled: false}\n", "charts/part/Chart.yaml": "apiVersion: v2\nname: part\nversion: 1.0.0\n",
			"charts/part/templates/p.yaml": object("Secret", "p"),
		}, []string{"ConfigMap a"}},
		"a distribution of a version is that version": {map[string]string{
			"Chart.yaml": "apiVersion: v2\nname: small\nversion: 1.0.0\nkubeVersion: \">=1.28.0\"\n",
		}, []string{"ConfigMap a"}},
	}
	for sentence, tc := range tests {
		t.Run(sentence, func(t *testing.T) {
			chart, err := helm.New(changed(tc.files), "chart", helm.Options{})
			require.NoError(t, err)
			agent, err := addon.New(addon.Options{Name: "hello", Manifests: chart})
			require.NoError(t, err)
			r := request()
			r.Cluster = cluster("c1", "v1.31.2-gke.7")
			rendering, err := agent.Render(t.Context(), r)
			require.NoError(t, err)
			var got []string
			for _, object := range rendering.Objects {
				got = append(got, object.GetKind()+" "+object.GetName())
			}
			assert.Equal(t, tc.want, got)
		})
	}
}
