package generated

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"

	"github.com/spokelet/spokelet/test/ship/render"
)

// Bases returns the folder of each mode of the chart, below the folder of the repository.
func Bases() map[string]string {
	return map[string]string{
		"hub": "manifests/hub", "klusterlet": "manifests/klusterlet", "klusterlet-hosted": "manifests/klusterlet-hosted",
		"klusterlet-managed": "manifests/klusterlet-hosted/managed",
	}
}

// The folders of the chart's files and of the definitions of a managed cluster.
const (
	chartFiles  = "manifests/chart/files"
	definitions = "manifests/crds/spoke"
)

// Files returns the content of every generated file, by its path below root.
func Files(root string) (map[string][]byte, error) {
	folders := Overlays()
	for mode, base := range Bases() {
		folders[path.Join(chartFiles, mode+".yaml")] = base
	}
	files := map[string][]byte{}
	for file, folder := range folders {
		text, err := rendered(root, folder)
		if err != nil {
			return nil, err
		}
		files[file] = text
	}
	text, err := keptDefinitions(filepath.Join(root, definitions))
	if err != nil {
		return nil, err
	}
	files[path.Join(chartFiles, "crds.yaml")] = text
	page, err := pageWithValues(root)
	if err != nil {
		return nil, err
	}
	files[valuesPage] = page
	about, err := monitoringFiles(root)
	if err != nil {
		return nil, err
	}
	maps.Copy(files, about)
	return files, nil
}

// Overlays returns the overlays that a test of another module runs, by the file with their objects.
func Overlays() map[string]string {
	const testdata, overlays = "test/integration/accounts/testdata/", "manifests/overlays/"
	return map[string]string{
		testdata + "klusterlet.yaml": overlays + "klusterlet-without-rights",
		testdata + "hosting.yaml":    overlays + "klusterlet-hosted-without-rights",
		testdata + "managed.yaml":    overlays + "klusterlet-hosted-without-rights/managed",
	}
}

// rendered returns the objects of a base or an overlay, below the folder of the repository.
func rendered(root, folder string) ([]byte, error) {
	text, err := render.Kustomize(filepath.Join(root, folder))
	if err != nil {
		return nil, err
	}
	return append(fmt.Appendf(nil, "# Written by \"make generate\" from %s.\n", folder), text...), nil
}

// keptDefinitions returns the CustomResourceDefinitions of a managed cluster, with the annotation that keeps them when
// the release is uninstalled: with a definition, Kubernetes deletes all its objects, and whatever those own.
func keptDefinitions(dir string) ([]byte, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("reading the definitions: %w", err)
	}
	text := []byte("# Written by \"make generate\" from " + definitions + ".\n")
	const before, after = "\nmetadata:\n  name:", "\nmetadata:\n  annotations:\n    helm.sh/resource-policy: keep\n  name:"
	for _, entry := range entries {
		content, err := os.ReadFile(filepath.Join(dir, entry.Name()))
		if err != nil {
			return nil, fmt.Errorf("reading a definition: %w", err)
		}
		if bytes.Count(content, []byte(before)) != 1 {
			return nil, fmt.Errorf("definition %s does not begin its metadata with its name", entry.Name())
		}
		text = append(text, "---\n"...)
		text = append(text, bytes.TrimSpace(bytes.Replace(content, []byte(before), []byte(after), 1))...)
		text = append(text, '\n')
	}
	return text, nil
}
