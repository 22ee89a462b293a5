package template

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/spokelet/spokelet/hub/addon"
	"github.com/spokelet/spokelet/internal/message"
	"github.com/spokelet/spokelet/internal/names"
)

// Input is the complete input of a rendering.
type Input struct {
	// Template is the template to render. A Compiled has its own, and does not look at this one.
	Template *Template
	// Config is the configuration of the add-on on this cluster; nil for none.
	Config *addonv1beta1.AddOnDeploymentConfig
	// Replicas is spec.replicaConfigs of the configuration, for which its type has no field.
	Replicas []addon.ReplicaConfig
	// Cluster is the managed cluster.
	Cluster *clusterv1.ManagedCluster
	// AddOn is the name of the add-on.
	AddOn string
}

// installNamespace is the namespace that the configuration moves the agent to; empty leaves the namespaces of the
// template.
func (in Input) installNamespace() string {
	if in.Config == nil {
		return ""
	}
	return in.Config.Spec.AgentInstallNamespace
}

// rendering is the state of a rendering.
type rendering struct {
	*Compiled

	in         Input
	variables  variables
	decoration *decoration
	// decorated are the namespaces of decorated workloads.
	decorated []string
	// problems are the first ones of all, which are counted, and broken the manifests that have some.
	problems []Problem
	all      int
	broken   sets.Set[int]
	missing  bool
	// left is how many bytes the values of variables may still take.
	left int
}

// Render returns the objects of the agent. The same input gives the same result, which shares nothing with the input.
// The error is an addon.InvalidError; errors in manifests are a *ProblemsError that lists the first of them. For many
// clusters, Compile the template once.
func Render(in Input) (addon.Rendering, error) {
	result, err := Compile(in.Template).Render(in)
	if err != nil {
		return addon.Rendering{}, err
	}
	for i, u := range result.Objects {
		object, _ := deepCopy(u.Object).(map[string]any)
		result.Objects[i] = &unstructured.Unstructured{Object: object}
	}
	var options []workv1.ManifestConfigOption
	for i := range result.ManifestConfigs {
		options = append(options, *result.ManifestConfigs[i].DeepCopy())
	}
	result.ManifestConfigs = options
	return result, nil
}

// Render is like the function Render, but what does not differ between clusters is shared with the template and with
// other renderings: nobody may change the result. An object that is the same on all clusters is the same pointer.
func (c *Compiled) Render(in Input) (addon.Rendering, error) {
	if _, err := c.template.health(); err != nil {
		return addon.Rendering{}, err
	}
	r := &rendering{
		Compiled: c, in: in, variables: variablesOf(in, c.template), left: maxValues, broken: sets.New[int](),
	}
	var err error
	if r.decoration, err = decorationOf(in, c.template.Registration, &r.variables); err != nil {
		return addon.Rendering{}, err
	}
	objects := make([]*unstructured.Unstructured, 0, len(c.manifests)+1)
	for i := range c.manifests {
		objects = append(objects, r.substitute(i))
	}
	var h home
	if in.installNamespace() != "" {
		h = homeOf(objects)
	}
	broken := r.broken.Clone()
	for i, u := range objects {
		// What else is wrong with a manifest may be wrong because of its variables.
		if !broken.Has(i) {
			objects[i] = r.finish(i, u, h)
		}
	}
	options := r.options(objects)
	objects = r.unique(append(objects, r.authorities(objects)...))
	if len(r.problems) > 0 {
		slices.SortStableFunc(r.problems, func(a, b Problem) int { return a.Manifest - b.Manifest })
		return addon.Rendering{}, r.problemsError(c.template.Name)
	}
	if r.decoration.used > r.left {
		return addon.Rendering{}, &addon.InvalidError{Message: fmt.Sprintf("the values of variables and what all containers "+
			"get, such as the settings of the proxy, take %d bytes in the manifests for this cluster, and may take %d",
			maxValues-r.left+r.decoration.used, maxValues)}
	}
	return addon.Rendering{Objects: objects, ManifestConfigs: options}, nil
}

// report returns a function that records the problems of a manifest.
func (r *rendering) report(index int) func(path, message string) {
	return func(path, problem string) {
		r.add(Problem{index, r.manifests[index].description, path, problem})
	}
}

// add counts a problem, and keeps it if it is one of the first: a template may have as many as characters.
func (r *rendering) add(p Problem) {
	r.all++
	r.broken.Insert(p.Manifest)
	if !r.full() {
		p.Path, p.Message = message.Cut(p.Path, message.MaxCause), message.Cut(p.Message, message.MaxCause)
		r.problems = append(r.problems, p)
	}
}

// full reports whether no more problems are kept.
func (r *rendering) full() bool { return len(r.problems) >= maxProblems }

// problemsError returns the error about the problems of a template.
func (r *rendering) problemsError(of string) error {
	return &ProblemsError{Template: of, Problems: r.problems, All: r.all, Hint: r.hint()}
}

// substitute returns a manifest with its variables replaced.
func (r *rendering) substitute(index int) *unstructured.Unstructured {
	m := &r.manifests[index]
	if len(m.below) == 0 {
		return m.object
	}
	s := &substitution{
		values: r.variables.value, inNames: r.variables.valueInName, report: r.report(index), full: r.full, left: &r.left,
	}
	u := &unstructured.Unstructured{Object: s.object(m.object.Object, m.below)}
	r.missing = r.missing || s.missing
	return u
}

// finish returns a manifest with its decoration, in its namespace.
func (r *rendering) finish(index int, u *unstructured.Unstructured, h home) *unstructured.Unstructured {
	report := r.report(index)
	checkIdentity(u, report)
	u, decorated := r.decoration.decorate(r.scaled(u), report)
	if to := r.in.installNamespace(); to != "" {
		u = h.moved(u, to)
	}
	if decorated {
		namespace, _ := identityOf(u.Object)
		r.decorated = append(r.decorated, namespace)
	}
	return u
}

// scaled returns a Deployment with the replicas that the configuration asks for; any other object as it is.
func (r *rendering) scaled(u *unstructured.Unstructured) *unstructured.Unstructured {
	kind, workload := workloadKindOf(u)
	spec, is := u.Object["spec"].(map[string]any)
	if !workload || !is || kind.resource != resourceDeployments {
		return u
	}
	replicas, found := addon.ReplicasOf(r.in.Replicas, addon.DeploymentID(u.GetName()))
	if !found {
		return u
	}
	object := maps.Clone(u.Object)
	spec = maps.Clone(spec)
	spec["replicas"] = int64(replicas)
	object["spec"] = spec
	return &unstructured.Unstructured{Object: object}
}

// options returns the feedback rules and update strategies, which follow their objects to other namespaces and names.
func (r *rendering) options(objects []*unstructured.Unstructured) []workv1.ManifestConfigOption {
	options := r.template.ManifestConfigs
	for i, index := range r.optionManifests {
		if index < 0 {
			continue
		}
		namespace, name := identityOf(objects[index].Object)
		about := options[i].ResourceIdentifier
		if about.Namespace == namespace && about.Name == name {
			continue
		}
		about.Namespace, about.Name = namespace, name
		if &options[0] == &r.template.ManifestConfigs[0] {
			options = slices.Clone(options)
		}
		options[i].ResourceIdentifier = about
	}
	return options
}

// hint returns how to define missing variables.
func (r *rendering) hint() string {
	switch {
	case !r.missing:
		return ""
	case r.in.Config == nil:
		return fmt.Sprintf("The add-on uses no AddOnDeploymentConfig: create one that defines the missing variables in "+
			"spec.customizedVariables and name it as a config of the add-on. Built in are %s.", r.known())
	}
	return fmt.Sprintf("Define the missing variables in spec.customizedVariables of AddOnDeploymentConfig %s/%s, or "+
		"correct their names in the template. Built in are %s.", r.in.Config.Namespace, r.in.Config.Name, r.known())
}

func (r *rendering) known() string {
	injected := r.variables.environment()
	known := make([]string, 0, len(injected))
	for _, v := range injected {
		known = append(known, v.name)
	}
	return strings.Join(known, ", ")
}

// unique reports duplicate objects. Of Namespaces that move to one name, one is left, with the labels and annotations
// of all.
func (r *rendering) unique(objects []*unstructured.Unstructured) []*unstructured.Unstructured {
	type identity struct {
		schema.GroupKind
		namespace, name string
	}
	first := make(map[identity]int, len(objects))
	moved := map[*unstructured.Unstructured][]*unstructured.Unstructured{}
	kept := make([]*unstructured.Unstructured, 0, len(objects))
	for i, u := range objects {
		id := identity{GroupKind: u.GroupVersionKind().GroupKind()}
		id.namespace, id.name = identityOf(u.Object)
		earlier, taken := first[id]
		switch {
		case !taken:
			first[id] = i
		case isNamespace(u) && id.name != "" && r.in.installNamespace() != "":
			moved[objects[earlier]] = append(moved[objects[earlier]], u)
			continue
		case id.name != "":
			r.add(Problem{i, describeObject(u), "", fmt.Sprintf(
				"it is the same object as manifest %d; remove one of the two", earlier)})
		}
		kept = append(kept, u)
	}
	for i, u := range kept {
		if others := moved[u]; len(others) > 0 {
			kept[i] = mergedNamespace(u, others)
		}
	}
	return kept
}

// mergedNamespace returns a Namespace with the labels and annotations that others have besides. The first one that has
// a key counts.
func mergedNamespace(namespace *unstructured.Unstructured, others []*unstructured.Unstructured,
) *unstructured.Unstructured {
	object := maps.Clone(namespace.Object)
	metadata, _ := object["metadata"].(map[string]any)
	metadata = maps.Clone(metadata)
	object["metadata"] = metadata
	for _, field := range []string{"labels", "annotations"} {
		all := map[string]any{}
		for _, u := range append([]*unstructured.Unstructured{namespace}, others...) {
			from, _ := u.Object["metadata"].(map[string]any)
			entries, _ := from[field].(map[string]any)
			for key, value := range entries {
				if _, taken := all[key]; !taken {
					all[key] = value
				}
			}
		}
		if len(all) > 0 {
			metadata[field] = all
		}
	}
	return &unstructured.Unstructured{Object: object}
}

// checkIdentity reports missing fields without which an object cannot be created.
func checkIdentity(u *unstructured.Unstructured, report func(path, message string)) {
	for _, need := range []struct{ path, value string }{
		{".apiVersion", u.GetAPIVersion()}, {".kind", u.GetKind()}, {".metadata.name", u.GetName()},
	} {
		if need.value == "" {
			report(need.path, "it is required")
		}
	}
}

// Namespace returns the namespace of the agent on the managed cluster (docs/reference/hub.md, "Install namespace"):
// that of the configuration, else that of the first Deployment, else that of the first DaemonSet, else the default. The
// error is an addon.InvalidError.
func Namespace(in Input) (string, error) {
	if namespace := in.installNamespace(); namespace != "" {
		return namespace, nil
	}
	for _, wanted := range []string{"deployments", "daemonsets"} {
		for i, object := range in.Template.Manifests {
			u := &unstructured.Unstructured{Object: object}
			if kind, _ := workloadKindOf(u); kind.resource == wanted {
				return namespaceOf(in, i, u)
			}
		}
	}
	return names.NamespaceAgentAddon, nil
}

// namespaceOf returns the namespace of a manifest with its variables replaced.
func namespaceOf(in Input, index int, u *unstructured.Unstructured) (string, error) {
	r := &rendering{in: in, variables: variablesOf(in, in.Template), broken: sets.New[int]()}
	raw := parseText(u.GetNamespace())
	value := func(p part) (string, bool) { return r.variables.value(p.name) }
	namespace, complete := raw.expand(value, func(p part) {
		r.missing = true
		r.add(Problem{index, describeObject(u), ".metadata.namespace", missingMessage(p.source)})
	})
	if !complete {
		return "", r.problemsError(in.Template.Name)
	}
	return cmp.Or(namespace, names.NamespaceAgentAddon), nil
}

// deepCopy returns a copy of decoded JSON.
func deepCopy(value any) any {
	switch typed := value.(type) {
	case map[string]any:
		to := make(map[string]any, len(typed))
		for key, item := range typed {
			to[key] = deepCopy(item)
		}
		return to
	case []any:
		to := make([]any, len(typed))
		for i, item := range typed {
			to[i] = deepCopy(item)
		}
		return to
	}
	return value
}
