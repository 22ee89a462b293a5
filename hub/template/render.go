package template

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"github.com/spokelet/spokelet/hub/addon"
	"github.com/spokelet/spokelet/internal/names"
)

// maxProblems is the number of problems that an error lists.
const maxProblems = 20

// Input is the complete input of a rendering.
type Input struct {
	// Template is the template to render.
	Template *Template
	// Config is the configuration of the add-on on this cluster; nil for none.
	Config *addonv1beta1.AddOnDeploymentConfig
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

// Problem is an error in a template.
type Problem struct {
	// Manifest is the index of the manifest in the template, from 0.
	Manifest int
	// Object is kind, namespace and name of the manifest as in the template.
	Object string
	// Path is the place in the manifest as a JSON path; empty means the manifest as a whole.
	Path string
	// Message describes the error.
	Message string
}

// String returns the problem in one line.
func (p Problem) String() string {
	where := fmt.Sprintf("manifest %d (%s)", p.Manifest, p.Object)
	if p.Path != "" {
		where += ", " + p.Path
	}
	return where + ": " + p.Message
}

// ProblemsError lists all errors in a template. It is an addon.InvalidError.
type ProblemsError struct {
	// Template is the name of the AddOnTemplate.
	Template string
	// Hint is the remedy; it may be empty.
	Hint string
	// Problems are ordered by manifest and path.
	Problems []Problem
}

// Error implements error.
func (e *ProblemsError) Error() string {
	texts := make([]string, 0, maxProblems+1)
	for i, problem := range e.Problems {
		if i == maxProblems {
			texts = append(texts, "and "+strconv.Itoa(len(e.Problems)-i)+" more")
			break
		}
		texts = append(texts, problem.String())
	}
	message := fmt.Sprintf("AddOnTemplate %s cannot be rendered: %s", e.Template, strings.Join(texts, "; "))
	if e.Hint != "" {
		message += ". " + e.Hint
	}
	return message
}

// Unwrap makes the error an addon.InvalidError.
func (e *ProblemsError) Unwrap() error { return &addon.InvalidError{Message: e.Error()} }

// rendering is the state of a rendering.
type rendering struct {
	in        Input
	variables variables
	mirrors   []addonv1beta1.ImageMirror
	problems  []Problem
	missing   bool
}

// Render returns the objects of the agent. The same input gives the same result, which shares nothing with the input.
// The error is an addon.InvalidError; errors in manifests are a *ProblemsError that lists all of them.
func Render(in Input) (addon.Rendering, error) {
	if _, err := in.Template.health(); err != nil {
		return addon.Rendering{}, err
	}
	mirrors, err := mirrorsOf(in)
	if err != nil {
		return addon.Rendering{}, err
	}
	r := &rendering{in: in, variables: variablesOf(in), mirrors: mirrors}
	objects := make([]*unstructured.Unstructured, 0, len(in.Template.Manifests)+1)
	for i, manifest := range in.Template.Manifests {
		objects = append(objects, r.manifest(i, manifest))
	}
	if ca := r.proxyConfigMap(); ca != nil {
		objects = append(objects, ca)
	}
	objects = r.unique(objects)
	if len(r.problems) > 0 {
		return addon.Rendering{}, &ProblemsError{Template: in.Template.Name, Problems: r.problems, Hint: r.hint()}
	}
	result := addon.Rendering{Objects: objects}
	for i := range in.Template.ManifestConfigs {
		result.ManifestConfigs = append(result.ManifestConfigs, *in.Template.ManifestConfigs[i].DeepCopy())
	}
	return result, nil
}

// manifest renders one manifest of the template.
func (r *rendering) manifest(index int, manifest map[string]any) *unstructured.Unstructured {
	describe := describeObject(&unstructured.Unstructured{Object: manifest})
	report := func(path, message string) {
		r.problems = append(r.problems, Problem{index, describe, path, message})
	}
	before := len(r.problems)
	s := &substitution{values: r.variables.values, report: report}
	u := &unstructured.Unstructured{Object: s.object(manifest)}
	r.missing = r.missing || s.missing
	if len(r.problems) > before {
		return u // What else is wrong may be wrong for that reason.
	}
	checkIdentity(u, report)
	typedReplicas(u, report)
	if resource, workload := workloadResource(u); workload {
		r.decorate(u, resource, report)
	}
	r.moveNamespace(u)
	return u
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
	known := make([]string, 0, len(r.variables.injected))
	for _, v := range r.variables.injected {
		known = append(known, v.name)
	}
	return strings.Join(known, ", ")
}

// unique reports duplicate objects. Duplicate Namespaces are dropped: moving can give several of them the same name.
func (r *rendering) unique(objects []*unstructured.Unstructured) []*unstructured.Unstructured {
	type identity struct {
		schema.GroupKind
		namespace, name string
	}
	first := map[identity]int{}
	kept := make([]*unstructured.Unstructured, 0, len(objects))
	for i, u := range objects {
		id := identity{u.GroupVersionKind().GroupKind(), u.GetNamespace(), u.GetName()}
		earlier, taken := first[id]
		switch {
		case !taken:
			first[id] = i
		case isNamespace(u) && r.in.installNamespace() != "":
			continue
		case id.name != "":
			r.problems = append(r.problems, Problem{i, describeObject(u), "", fmt.Sprintf(
				"it is the same object as manifest %d; remove one of the two", earlier)})
		}
		kept = append(kept, u)
	}
	return kept
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

// typedReplicas converts spec.replicas of a workload from a string to a number, so that it can be a variable.
func typedReplicas(u *unstructured.Unstructured, report func(path, message string)) {
	if u.GroupVersionKind().Group != "apps" {
		return
	}
	spec, _ := u.Object["spec"].(map[string]any)
	text, isText := spec["replicas"].(string)
	if !isText {
		return
	}
	number, err := strconv.ParseInt(text, 10, 32)
	if err != nil {
		report(".spec.replicas", fmt.Sprintf("%q is no whole number", text))
		return
	}
	spec["replicas"] = number
}

// workloadResource returns the resource of a Deployment or DaemonSet; false for every other kind.
func workloadResource(u *unstructured.Unstructured) (string, bool) {
	kind := u.GroupVersionKind()
	if kind.Group != "apps" {
		return "", false
	}
	switch kind.Kind {
	case "Deployment":
		return "deployments", true
	case "DaemonSet":
		return "daemonsets", true
	}
	return "", false
}

// Namespace returns the namespace of the agent on the managed cluster (docs/reference/hub.md, "Install namespace"):
// that of the configuration, else that of the first Deployment, else that of the first DaemonSet, else the default. The
// error is an addon.InvalidError.
func Namespace(in Input) (string, error) {
	if namespace := in.installNamespace(); namespace != "" {
		return namespace, nil
	}
	values := variablesOf(in)
	for _, wanted := range []string{"deployments", "daemonsets"} {
		for i, manifest := range in.Template.Manifests {
			u := &unstructured.Unstructured{Object: manifest}
			if resource, _ := workloadResource(u); resource != wanted {
				continue
			}
			namespace, missing := expand(u.GetNamespace(), values.values)
			if len(missing) > 0 {
				r := &rendering{in: in, variables: values, missing: true}
				return "", &ProblemsError{Template: in.Template.Name, Hint: r.hint(), Problems: []Problem{
					{i, describeObject(u), ".metadata.namespace", missingMessage(missing[0])},
				}}
			}
			return cmp.Or(namespace, names.NamespaceAgentAddon), nil
		}
	}
	return names.NamespaceAgentAddon, nil
}

// describeObject returns kind, namespace and name of an object.
func describeObject(u *unstructured.Unstructured) string {
	name := u.GetName()
	if namespace := u.GetNamespace(); namespace != "" {
		name = namespace + "/" + name
	}
	return strings.TrimSpace(cmp.Or(u.GetKind(), "no kind") + " " + name)
}
