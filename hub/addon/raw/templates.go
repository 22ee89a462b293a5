package raw

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"
	"text/template"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/spokelet/spokelet/hub/addon"
)

// noValue is the text that text/template writes for an undefined field.
const noValue = "<no value>"

// Templates are the files of an add-on. New makes them.
type Templates struct {
	files []file
}

var _ addon.Builder = &Templates{}

// file is a file of the folder.
type file struct {
	path string
	// parsed is the template in it.
	parsed *template.Template
	// namesNoValue reports that the author wrote noValue.
	namesNoValue bool
}

// New reads all files in a folder, for example of an embed.FS; "." is the root. The error lists the files that are no
// YAML or JSON by their name, or no templates.
func New(files fs.FS, dir string) (*Templates, error) {
	t := &Templates{}
	var problems []error
	err := fs.WalkDir(files, path.Clean(dir), func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		f, err := read(files, name)
		if err != nil {
			problems = append(problems, err)
			return nil
		}
		t.files = append(t.files, f)
		return nil
	})
	switch {
	case err != nil:
		return nil, fmt.Errorf("reading the folder %s of manifests: %w", dir, err)
	case len(problems) > 0:
		return nil, errors.Join(problems...)
	case len(t.files) == 0:
		return nil, fmt.Errorf("the folder %s of manifests has no files", dir)
	}
	return t, nil
}

func read(files fs.FS, name string) (file, error) {
	switch path.Ext(name) {
	case ".yaml", ".yml", ".json":
	default:
		return file{}, fmt.Errorf("file %s is no YAML: move it out of the folder of manifests, or let its name end in "+
			".yaml, .yml or .json", name)
	}
	raw, err := fs.ReadFile(files, name)
	if err != nil {
		return file{}, fmt.Errorf("reading file %s: %w", name, err)
	}
	parsed, err := template.New(name).Funcs(functions()).Parse(string(raw))
	if err != nil {
		return file{}, fmt.Errorf("file %s is no template: %s", name, shortened(err))
	}
	return file{path: name, parsed: parsed, namesNoValue: bytes.Contains(raw, []byte(noValue))}, nil
}

// shortened returns an error of text/template, which begins with file and line, without its own prefix.
func shortened(err error) string { return strings.TrimPrefix(err.Error(), "template: ") }

// Build implements addon.Builder. The error is an addon.InvalidError that lists the problems of all files.
func (t *Templates) Build(_ context.Context, in addon.Input) ([]runtime.Object, error) {
	values := builtIn(in)
	var objects []runtime.Object
	var problems []string
	for _, f := range t.files {
		made, err := f.build(values)
		if err != nil {
			problems = append(problems, err.Error())
			continue
		}
		objects = append(objects, made...)
	}
	if len(problems) > 0 {
		return nil, &addon.InvalidError{Message: strings.Join(problems, "; ")}
	}
	return objects, nil
}

// builtIn returns the values of an add-on with those that are built in.
func builtIn(in addon.Input) addon.Values {
	defaults := addon.Values{"ManagedKubeConfigSecret": in.AddOn.Name + "-managed-kubeconfig"}
	if in.Registers {
		defaults["HubKubeConfigSecret"] = in.AddOn.Name + "-hub-kubeconfig"
	}
	return addon.MergeValues(defaults, in.Values, addon.Values{
		"ClusterName": in.Cluster.Name, "AddonInstallNamespace": in.Namespace, "InstallMode": in.InstallMode(),
	})
}

// build returns the objects of a file.
func (f file) build(values addon.Values) ([]runtime.Object, error) {
	var out bytes.Buffer
	if err := f.parsed.Execute(&out, map[string]any(values)); err != nil {
		return nil, fmt.Errorf("file %s cannot be rendered: %s", f.path, shortened(err))
	}
	text := out.String()
	if at := strings.Index(text, noValue); at >= 0 && !f.namesNoValue {
		return nil, fmt.Errorf("file %s, line %d of the result: a field has no value (%s): define it, or test it with "+
			"{{ if }}", f.path, lineOf(text, at), strings.TrimSpace(lineAt(text, at)))
	}
	made, err := addon.ParseYAML(text)
	if err != nil {
		return nil, fmt.Errorf("file %s, in the result: %w", f.path, err)
	}
	objects := make([]runtime.Object, 0, len(made))
	for _, object := range made {
		objects = append(objects, object)
	}
	return objects, nil
}

func lineOf(text string, at int) int { return strings.Count(text[:at], "\n") + 1 }

func lineAt(text string, at int) string {
	begin := strings.LastIndex(text[:at], "\n") + 1
	line, _, _ := strings.Cut(text[begin:], "\n")
	return line
}
