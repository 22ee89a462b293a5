package raw_test

import (
	"context"
	"encoding/json"
	"io/fs"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"github.com/spokelet/spokelet/hub/addon"
	"github.com/spokelet/spokelet/hub/addon/raw"
)

// input is the input for add-on weather on cluster c1.
func input(values addon.Values) addon.Input {
	in := addon.Input{
		Request: addon.Request{
			Cluster: &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: "c1"}},
			AddOn: &addonv1beta1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{
				Name: "weather", Namespace: "c1", Annotations: map[string]string{},
			}},
		},
		Namespace: "weather-system", Values: values, Registers: true,
	}
	return in
}

func folder(files map[string]string) fs.FS {
	all := fstest.MapFS{}
	for name, text := range files {
		all["manifests/"+name] = &fstest.MapFile{Data: []byte(text)}
	}
	return all
}

// rendered are the objects of files as JSON.
func rendered(t *testing.T, files map[string]string, in addon.Input) ([]string, error) {
	t.Helper()
	templates, err := raw.New(folder(files), "manifests")
	if err != nil {
		return nil, err
	}
	objects, err := templates.Build(t.Context(), in)
	if err != nil {
		return nil, err
	}
	var all []string
	for _, object := range objects {
		u, ok := object.(*unstructured.Unstructured)
		require.True(t, ok)
		text, err := json.Marshal(u.Object)
		require.NoError(t, err)
		all = append(all, string(text))
	}
	return all, nil
}

// Shows: hub/library-raw
func TestTemplates(t *testing.T) {
	tests := map[string]struct {
		files  map[string]string
		values addon.Values
		change func(*addon.Input)
		want   []string
	}{
		"plain YAML is a template without braces": {files: map[string]string{"a.yaml": "a: 1"}, want: []string{`{"a":1}`}},
		"files come in the order of their paths": {
			files: map[string]string{"b.yml": "b: 1", "a/z.json": `{"z": 1}`, "a.yaml": "a: 1\n---\nc: 2\n---\n"},
			want:  []string{`{"z":1}`, `{"a":1}`, `{"c":2}`, `{"b":1}`},
		},
		"built-in values name the cluster and the namespace": {
			files: map[string]string{"a.yaml": "a: {{ .ClusterName }}/{{ .AddonInstallNamespace }}/{{ .InstallMode }}"},
			want:  []string{`{"a":"c1/weather-system/Default"}`},
		},
		"nobody overrides them": {
			files: map[string]string{"a.yaml": "a: {{ .ClusterName }}"}, values: addon.Values{"ClusterName": "other"},
			want: []string{`{"a":"c1"}`},
		},
		"Secrets have names": {
			files: map[string]string{"a.yaml": "a: {{ .HubKubeConfigSecret }}\nb: {{ .ManagedKubeConfigSecret }}"},
			want:  []string{`{"a":"weather-hub-kubeconfig","b":"weather-managed-kubeconfig"}`},
		},
		"which the author may override": {
			files:  map[string]string{"a.yaml": "a: {{ .ManagedKubeConfigSecret }}"},
			values: addon.Values{"ManagedKubeConfigSecret": "own"}, want: []string{`{"a":"own"}`},
		},
		"an agent without credentials has no Secret": {
			files:  map[string]string{"a.yaml": "a: x{{ if .HubKubeConfigSecret }}y{{ end }}"},
			change: func(in *addon.Input) { in.Registers = false }, want: []string{`{"a":"x"}`},
		},
		"a hosted agent knows its mode": {
			files: map[string]string{"a.yaml": "a: {{ .InstallMode }}"},
			change: func(in *addon.Input) {
				in.AddOn.Annotations["addon.open-cluster-management.io/hosting-cluster-name"] = "h"
			},
			want: []string{`{"a":"Hosted"}`},
		},
		"a condition may leave a file without objects": {
			files: map[string]string{"a.yaml": "{{ if .HTTPProxy }}a: 1{{ end }}", "b.yaml": "b: 1"}, want: []string{`{"b":1}`},
		},
		"an author may write what an undefined field gives": {
			files: map[string]string{"a.yaml": "a: <no value>"}, want: []string{`{"a":"\u003cno value\u003e"}`},
		},
		"whole numbers stay whole": {files: map[string]string{"a.yaml": "a: 10000000\nb: 0.5"},
			want: []string{`{"a":10000000,"b":0.5}`}},
	}
	for sentence, tc := range tests {
		t.Run(sentence, func(t *testing.T) {
			in := input(tc.values)
			if tc.change != nil {
				tc.change(&in)
			}
			got, err := rendered(t, tc.files, in)
			require.NoError(t, err)
			assert.Equal(t, tc.want, got)
			again, err := rendered(t, tc.files, in)
			require.NoError(t, err)
			assert.Equal(t, got, again, "the same input gives the same objects")
		})
	}
}

// Shows: hub/library-raw-errors
func TestErrorsNameFileAndLine(t *testing.T) {
	tests := map[string]struct {
		files map[string]string
		says  string
		// built reports that the error is found when the add-on is built.
		built bool
	}{
		"a folder has files": {map[string]string{}, "folder manifests", true},
		"a file is YAML": {map[string]string{"README.md": "# x", "a.yaml": "a: 1"},
			"file manifests/README.md is no YAML: move it", true},
		"a template is complete": {map[string]string{"a.yaml": "a: 1\nb: {{ .X "},
			"file manifests/a.yaml is no template: manifests/a.yaml:2:", true},
		"a function exists": {map[string]string{"a.yaml": "{{ lookup }}"}, `function "lookup" not defined`, true},
		"a field has a value": {map[string]string{"a.yaml": "a: 1\nb: {{ .Nowhere }}"},
			"file manifests/a.yaml, line 2 of the result: a field has no value (b: <no value>)", false},
		"a function gets what it needs": {map[string]string{"a.yaml": "a: 1\nb: {{ base64 5 }}"},
			"file manifests/a.yaml cannot be rendered: manifests/a.yaml:2:", false},
		"a pattern is one": {map[string]string{"a.yaml": `{{ regexMatch "(" "a" }}`}, "the pattern", false},
		"the result is YAML": {map[string]string{"a.yaml": "a: 1\n---\nb: [\n"},
			"file manifests/a.yaml, in the result: the document that begins at line 3", false},
		"the result is an object": {map[string]string{"a.yaml": "text"}, "it is no object", false},
		"all files are told": {map[string]string{"a.yaml": "a: {{ .Nowhere }}", "b.yaml": "b: {{ .Nowhere }}"},
			"manifests/b.yaml", false},
	}
	for sentence, tc := range tests {
		t.Run(sentence, func(t *testing.T) {
			templates, err := raw.New(folder(tc.files), "manifests")
			require.Equal(t, tc.built, err != nil)
			if err == nil {
				_, err = templates.Build(t.Context(), input(nil))
				assert.True(t, addon.IsInvalid(err))
			}
			require.ErrorContains(t, err, tc.says)
		})
	}
}

func TestAnErrorNamesTheAddOnAndTheCluster(t *testing.T) {
	templates, err := raw.New(folder(map[string]string{"a.yaml": "a: {{ .Nowhere }}"}), "manifests")
	require.NoError(t, err)
	agent, err := addon.New(addon.Options{Name: "weather", Manifests: templates})
	require.NoError(t, err)
	_, err = agent.Render(context.WithoutCancel(t.Context()), input(nil).Request)
	require.ErrorContains(t, err, "add-on weather on cluster c1: file manifests/a.yaml, line 1")
}
