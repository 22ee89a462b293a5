package render

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"helm.sh/helm/v3/pkg/action"
	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"
)

// marker is a file that only the folder manifests contains.
const marker = "manifests/chart/Chart.yaml"

// Root returns the folder of the repository, above the working directory.
func Root() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("finding the repository: %w", err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, marker)); err == nil {
			return dir, nil
		}
		if dir == filepath.Dir(dir) {
			return "", fmt.Errorf("finding the repository: no folder above has the file %s", marker)
		}
		dir = filepath.Dir(dir)
	}
}

// Kustomize returns, as YAML, what "kubectl kustomize" prints for a folder.
func Kustomize(dir string) ([]byte, error) {
	objects, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), dir)
	if err != nil {
		return nil, fmt.Errorf("building %s: %w", dir, err)
	}
	text, err := objects.AsYaml()
	if err != nil {
		return nil, fmt.Errorf("printing %s: %w", dir, err)
	}
	return text, nil
}

// Release is where a chart is installed.
type Release struct{ Name, Namespace string }

// Load reads a chart.
func Load(dir string) (*chart.Chart, error) {
	loaded, err := loader.LoadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("reading the chart %s: %w", dir, err)
	}
	return loaded, nil
}

// Helm returns, as YAML, what "helm template" prints for a chart with these values.
func Helm(c *chart.Chart, release Release, values map[string]any) ([]byte, error) {
	install := action.NewInstall(&action.Configuration{Log: func(string, ...any) {}})
	install.ClientOnly, install.DryRun = true, true
	install.ReleaseName, install.Namespace = release.Name, release.Namespace
	install.KubeVersion = KubeVersion()
	// Rendering changes the values.
	values, err := clone(values)
	if err != nil {
		return nil, err
	}
	rendered, err := install.Run(c, values)
	if err != nil {
		return nil, fmt.Errorf("rendering the chart: %w", err)
	}
	return []byte(rendered.Manifest), nil
}

// KubeVersion returns the version that charts are rendered for without an API server.
func KubeVersion() *chartutil.KubeVersion {
	return &chartutil.KubeVersion{Version: "v1.35.0", Major: "1", Minor: "35"}
}

// clone returns a copy of values, with the types that a file of values has.
func clone(values map[string]any) (map[string]any, error) {
	text, err := yaml.Marshal(values)
	if err != nil {
		return nil, fmt.Errorf("encoding values: %w", err)
	}
	read, err := chartutil.ReadValues(text)
	if err != nil {
		return nil, fmt.Errorf("decoding values: %w", err)
	}
	return read, nil
}

// Objects decodes YAML documents; empty ones are left out.
func Objects(text []byte) ([]*unstructured.Unstructured, error) {
	var objects []*unstructured.Unstructured
	decoder := utilyaml.NewYAMLOrJSONDecoder(bytes.NewReader(text), 4096)
	for {
		object := &unstructured.Unstructured{}
		err := decoder.Decode(&object.Object)
		switch {
		case errors.Is(err, io.EOF):
			return objects, nil
		case err != nil:
			return nil, fmt.Errorf("decoding what was rendered: %w", err)
		case len(object.Object) == 0:
			continue
		case object.GetKind() == "" || object.GetName() == "":
			return nil, fmt.Errorf("decoding what was rendered: an object without kind or name: %v", object.Object)
		}
		objects = append(objects, object)
	}
}
