package helm

import (
	"context"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"

	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	"helm.sh/helm/v3/pkg/releaseutil"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"github.com/spokelet/spokelet/hub/addon"
)

// notes is the name of the template with the text that Helm prints after an installation.
const notes = "NOTES.txt"

// Options are how a chart is rendered. The zero value renders as Helm does.
type Options struct {
	// Strict makes a template that uses an undefined value an error.
	Strict bool
}

// Chart is a chart of an add-on. New makes one.
type Chart struct {
	name    string
	options Options
	files   []*loader.BufferedFile
}

var _ addon.Builder = &Chart{}

// New reads the chart in a folder, for example of an embed.FS; "." is the root. The error names what is wrong with the
// files of the chart; templates are read when they are rendered.
func New(files fs.FS, dir string, options Options) (*Chart, error) {
	c := &Chart{options: options}
	dir = path.Clean(dir)
	err := fs.WalkDir(files, dir, func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || path.Base(name) == notes {
			return err
		}
		raw, err := fs.ReadFile(files, name)
		if err != nil {
			return fmt.Errorf("reading %s: %w", name, err)
		}
		c.files = append(c.files, &loader.BufferedFile{Name: strings.TrimPrefix(name, dir+"/"), Data: raw})
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("reading the chart in folder %s: %w", dir, err)
	}
	loaded, err := c.load()
	if err != nil {
		return nil, fmt.Errorf("reading the chart in folder %s: %w", dir, err)
	}
	c.name = loaded.Name()
	if loaded.Metadata.Type == "library" {
		return nil, fmt.Errorf("chart %s in folder %s is a library, which has no objects: put it into charts/ of the chart "+
			"of the add-on", c.name, dir)
	}
	return c, nil
}

// load returns a chart that nobody else has: Helm changes charts with dependencies, and templates may change the values
// of a chart.
func (c *Chart) load() (*chart.Chart, error) {
	loaded, err := loader.LoadFiles(c.files)
	if err != nil {
		return nil, err
	}
	return loaded, loaded.Validate()
}

// Build implements addon.Builder. The error is an addon.InvalidError, or an addon.NotReadyError while the Kubernetes
// version of the cluster is not known.
func (c *Chart) Build(_ context.Context, in addon.Input) ([]runtime.Object, error) {
	capabilities, err := capabilitiesOf(in.Cluster)
	if err != nil {
		return nil, err
	}
	values, err := builtIn(in)
	if err != nil {
		return nil, err
	}
	loaded, err := c.load()
	if err != nil {
		return nil, c.invalid(err)
	}
	if need := loaded.Metadata.KubeVersion; need != "" && !runs(need, capabilities.KubeVersion) {
		return nil, c.invalid(fmt.Errorf("it needs Kubernetes %s, and the cluster runs %s", need,
			capabilities.KubeVersion.Version))
	}
	if err := chartutil.ProcessDependencies(loaded, chartutil.Values(values)); err != nil {
		return nil, c.invalid(err)
	}
	release := chartutil.ReleaseOptions{Name: in.AddOn.Name, Namespace: in.Namespace}
	rendering, err := chartutil.ToRenderValues(loaded, values, release, capabilities)
	if err != nil {
		return nil, c.invalid(err)
	}
	rendered, err := engine.Engine{Strict: c.options.Strict}.Render(loaded, rendering)
	if err != nil {
		return nil, c.invalid(err)
	}
	return c.objects(loaded, rendered)
}

// builtIn returns the values of an add-on with those that are built in, as a values file would have them. The error is
// an addon.InvalidError about a value that no file can have.
func builtIn(in addon.Input) (addon.Values, error) {
	given, err := addon.JSONStructToValues(in.Values)
	if err != nil {
		return nil, &addon.InvalidError{Message: fmt.Sprintf("the values for a chart must be such as JSON has: %v", err)}
	}
	defaults := addon.Values{"managedKubeConfigSecret": in.AddOn.Name + "-managed-kubeconfig"}
	if in.Registers {
		defaults["hubKubeConfigSecret"] = in.AddOn.Name + "-hub-kubeconfig"
	}
	hosting := &chartutil.Capabilities{}
	if in.Hosting != nil {
		if hosting, err = capabilitiesOf(in.Hosting); err != nil {
			return nil, err
		}
	}
	if defaults["hostingClusterCapabilities"], err = addon.JSONStructToValues(hosting); err != nil {
		return nil, err
	}
	return addon.MergeValues(defaults, given, addon.Values{
		"clusterName": in.Cluster.Name, "addonInstallNamespace": in.Namespace, "installMode": in.InstallMode(),
	}), nil
}

// capabilitiesOf returns what charts may know about a cluster.
func capabilitiesOf(cluster *clusterv1.ManagedCluster) (*chartutil.Capabilities, error) {
	reported := cluster.Status.Version.Kubernetes
	if reported == "" {
		return nil, &addon.NotReadyError{Message: fmt.Sprintf("waiting for cluster %s to report its Kubernetes version",
			cluster.Name)}
	}
	version, err := chartutil.ParseKubeVersion(reported)
	if err != nil {
		return nil, &addon.InvalidError{Message: fmt.Sprintf("ManagedCluster %s: status.version.kubernetes is %q: %v",
			cluster.Name, reported, err)}
	}
	version.Version = reported // Parsing removes what a distribution adds to its version.
	return &chartutil.Capabilities{
		KubeVersion: *version, APIVersions: chartutil.VersionSet{},
		HelmVersion: chartutil.DefaultCapabilities.HelmVersion,
	}, nil
}

// runs reports whether a cluster with this version has one that a chart needs. What a distribution adds to its version
// does not count.
func runs(need string, has chartutil.KubeVersion) bool {
	bare, err := chartutil.ParseKubeVersion(has.Version)
	return err == nil && chartutil.IsCompatibleRange(need, bare.Version)
}

// objects returns the objects of a chart: definitions, and what its templates rendered to, by the path of a template.
func (c *Chart) objects(loaded *chart.Chart, rendered map[string]string) ([]runtime.Object, error) {
	var definitions, others []*unstructured.Unstructured
	for _, definition := range loaded.CRDObjects() {
		parsed, err := parse(definition.Filename, string(definition.File.Data))
		if err != nil {
			return nil, c.invalid(err)
		}
		definitions = append(definitions, parsed...)
	}
	for _, name := range slices.Sorted(maps.Keys(rendered)) {
		if path.Base(name) == notes {
			continue // It is one of a dependency that is an archive.
		}
		parsed, err := parse(name, rendered[name])
		if err != nil {
			return nil, c.invalid(err)
		}
		others = append(others, parsed...)
	}
	slices.SortStableFunc(others, byInstallation)
	var objects []runtime.Object
	for _, object := range slices.Concat(definitions, others) {
		deployed, err := interpret(object)
		if err != nil {
			return nil, c.invalid(err)
		}
		if deployed != nil {
			objects = append(objects, deployed)
		}
	}
	return objects, nil
}

// parse returns the objects of a file, without documents that have no kind.
func parse(name, text string) ([]*unstructured.Unstructured, error) {
	objects, err := addon.ParseYAML(text)
	if err != nil {
		return nil, fmt.Errorf("%s, in the result: %w", name, err)
	}
	return slices.DeleteFunc(objects, func(object *unstructured.Unstructured) bool { return object.GetKind() == "" }), nil
}

// byInstallation compares objects by the order in which Helm installs their kinds; kinds that Helm does not know come
// last, by name.
func byInstallation(a, b *unstructured.Unstructured) int {
	place := func(object *unstructured.Unstructured) int {
		if at := slices.Index(releaseutil.InstallOrder, object.GetKind()); at >= 0 {
			return at
		}
		return len(releaseutil.InstallOrder)
	}
	placeA, placeB := place(a), place(b)
	if placeA == placeB && placeA == len(releaseutil.InstallOrder) {
		return strings.Compare(a.GetKind(), b.GetKind())
	}
	return placeA - placeB
}

// invalid returns the error about the chart, in one line.
func (c *Chart) invalid(err error) error {
	message := strings.Join(strings.Fields(err.Error()), " ")
	if strings.Contains(message, "no template") {
		message += `; files whose names begin with "_" are embedded only by a pattern such as "all:chart"`
	}
	return &addon.InvalidError{Message: fmt.Sprintf("chart %s cannot be rendered: %s", c.name, message)}
}
