package render_test

import (
	"context"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	"sigs.k8s.io/yaml"

	"github.com/spokelet/spokelet/hub/addon"
	"github.com/spokelet/spokelet/hub/render"
)

var update = flag.Bool("update", false, "write the golden files")

const (
	samples = "../../manifests/samples"
	pages   = "../../docs/operations"
)

// by is the version of the program in the records of works.
var by = regexp.MustCompile(`,"by":"[^"]*"`)

// fromFiles returns the files of folders and files; of a page of the documentation, its examples.
func fromFiles(t *testing.T, names ...string) []render.File {
	t.Helper()
	var files []render.File
	for _, name := range names {
		if about, err := os.Stat(name); err == nil && about.IsDir() {
			below, err := filepath.Glob(filepath.Join(name, "*.yaml"))
			require.NoError(t, err)
			files = append(files, fromFiles(t, below...)...)
			continue
		}
		raw, err := os.ReadFile(name)
		require.NoError(t, err)
		text := string(raw)
		if filepath.Ext(name) == ".md" {
			var examples []string
			for _, block := range regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllStringSubmatch(text, -1) {
				examples = append(examples, block[1])
			}
			text = strings.Join(examples, "---\n")
		}
		files = append(files, render.File{Name: filepath.Base(name), Text: text})
	}
	return files
}

// author returns the add-ons of a program.
func author(t *testing.T) render.Program {
	t.Helper()
	agent, err := addon.New(addon.Options{
		Name: "notes", Values: []addon.ValuesFunc{addon.GetValuesFromAddonAnnotation},
		KubeClient: &addon.KubeClient{Roles: []addon.HubRole{{Name: "notes-reader"}}},
		Manifests: addon.ManifestsFunc(func(_ context.Context, in addon.Input) ([]runtime.Object, error) {
			text, _ := in.Values["text"].(string)
			data := map[string]string{"text": text}
			if pen := in.Choice.First(addonv1beta1.ConfigGroupResource{Resource: "configmaps"}); pen != nil && pen.Object != nil {
				data["ink"], _, _ = unstructured.NestedString(pen.Object.Object, "data", "ink")
			}
			return []runtime.Object{&corev1.ConfigMap{
				ObjectMeta: metav1.ObjectMeta{Namespace: in.Namespace, Name: in.Cluster.Name}, Data: data,
			}, &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: in.Namespace, Name: "notes"}}}, nil
		}),
		HealthProber: addon.HealthProber{Type: addon.HealthDeployments},
		ConfigGVRs:   []schema.GroupVersionResource{{Version: "v1", Resource: "configmaps"}},
	})
	require.NoError(t, err)
	agents, err := addon.NewFixed(agent)
	require.NoError(t, err)
	return render.Program{Name: "notes-manager", Agents: agents, AddOns: []string{"notes"}}
}

// Shows: hub/render-as-the-hub
func TestWhatIsRendered(t *testing.T) {
	templates := render.Program{Name: "spokelet-hub"}
	notes := render.File{Name: "notes.yaml", Text: `
apiVersion: addon.open-cluster-management.io/v1alpha1
kind: ManagedClusterAddOn
metadata:
  name: notes
  namespace: desk
  annotations: {addon.open-cluster-management.io/values: '{"text":"{{not a variable}}"}'}
spec:
  installNamespace: notes
  configs:
    - {resource: configmaps, namespace: desks, name: pen}
    - {group: pencils.example.com, resource: pencils, name: hard}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: pen, namespace: desks}
data: {ink: blue}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: pencils.pencils.example.com}
spec: {group: pencils.example.com, names: {kind: Graphite, plural: pencils}}
---
apiVersion: pencils.example.com/v1
kind: Graphite
metadata: {name: hard}
`}
	for sentence, tc := range map[string]struct {
		golden  string
		program render.Program
		files   []render.File
		options render.Options
	}{
		"the sample add-on on a cluster that no file has": {
			"hello.yaml", templates, fromFiles(t, samples+"/hello"), render.Options{Clusters: []string{"cluster1"}},
		},
		"the objects of the sample add-on": {
			"hello-objects.yaml", templates, fromFiles(t, samples+"/hello"),
			render.Options{Clusters: []string{"cluster1"}, Output: render.OutputObjects},
		},
		"the template of the page for authors with other values on each cluster": {
			"weather.yaml", templates, fromFiles(t, pages+"/templates.md", "testdata/weather-fleet.yaml"), render.Options{},
		},
		"its objects on one cluster": {
			"weather-objects.yaml", templates, fromFiles(t, pages+"/templates.md", "testdata/weather-fleet.yaml"),
			render.Options{Clusters: []string{"proxied"}, Output: render.OutputObjects},
		},
		"placements, hosted mode and hooks on both sides": {
			"hosted-works.yaml", templates, fromFiles(t, "testdata/hosted.yaml"), render.Options{},
		},
		"an add-on of an author's program": {
			"author.yaml", author(t), []render.File{notes}, render.Options{},
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			text, err := tc.program.Render(t.Context(), tc.files, tc.options)
			require.NoError(t, err)
			again, err := tc.program.Render(t.Context(), tc.files, tc.options)
			require.NoError(t, err)
			assert.Equal(t, text, again, "the text is stable")
			documents(t, text)
			text = by.ReplaceAllString(text, "")
			path := filepath.Join("testdata", "golden", tc.golden)
			if *update {
				require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o750))
				require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
			}
			want, err := os.ReadFile(path)
			require.NoError(t, err)
			assert.Equal(t, string(want), text)
		})
	}
}

// documents returns the objects of a text, each of which must be valid YAML.
func documents(t *testing.T, text string) []map[string]any {
	t.Helper()
	var all []map[string]any
	for part := range strings.SplitSeq(text, "\n---\n") {
		var object map[string]any
		require.NoError(t, yaml.UnmarshalStrict([]byte(part), &object), part)
		if object != nil {
			assert.NotEmpty(t, object["kind"])
			all = append(all, object)
		}
	}
	return all
}
