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

// maxProblems is how many problems an error tells in full.
const maxProblems = 20

// Input is all that a rendering depends on.
type Input struct {
	// Template is what is rendered.
	Template *Template
	// Config is the configuration of the add-on on this cluster; nil when there is none.
	Config *addonv1beta1.AddOnDeploymentConfig
	// Cluster is the managed cluster.
	Cluster *clusterv1.ManagedCluster
	// AddOn is the name of the add-on.
	AddOn string
}

// installNamespace is where the configuration moves the agent to; empty leaves it where the template has it.
func (in Input) installNamespace() string {
	if in.Config == nil {
		return ""
	}
	return in.Config.Spec.AgentInstallNamespace
}

// Problem is one thing that is wrong with a template.
type Problem struct {
	// Manifest is the number of the manifest in the template, from 0.
	Manifest int
	// Object is kind, namespace and name of the manifest as the template has them.
	Object string
	// Path is the place in the manifest as a JSON path; empty means the manifest as a whole.
	Path string
	// Message says what is wrong.
	Message string
}

// String tells the problem in one line.
func (p Problem) String() string {
	where := fmt.Sprintf("manifest %d (%s)", p.Manifest, p.Object)
	if p.Path != "" {
		where += ", " + p.Path
	}
	return where + ": " + p.Message
}

// ProblemsError is all that is wrong with a template. It is an addon.InvalidError.
type ProblemsError struct {
	// Template is the name of the AddOnTemplate.
	Template string
	// Hint says what to do about it; it may be empty.
	Hint string
	// Problems are ordered by manifest and path.
	Problems []Problem
}

// Error implements error.
func (e *ProblemsError) Error() string {
	told := make([]string, 0, maxProblems+1)
	for i, problem := range e.Problems {
		if i == maxProblems {
			told = append(told, "and "+strconv.Itoa(len(e.Problems)-i)+" more")
			break
		}
		told = append(told, problem.String())
	}
	message := fmt.Sprintf("AddOnTemplate %s cannot be rendered: %s", e.Template, strings.Join(told, "; "))
	if e.Hint != "" {
		message += ". " + e.Hint
	}
	return message
}

// Unwrap makes the error an addon.InvalidError.
func (e *ProblemsError) Unwrap() error { return &addon.InvalidError{Message: e.Error()} }

// rendering is a rendering under way.
type rendering struct {
	in        Input
	variables variables
	mirrors   []addonv1beta1.ImageMirror
	problems  []Problem
	missing   bool
}

// Render returns the objects of the agent. The same input gives the same result, and nothing of the input is shared
// with it or changed. The error is an addon.InvalidError; where manifests are wrong it is a *ProblemsError that names
// all of them.
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

// hint says how to give missing variables a value.
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

// unique reports objects that stand there twice. Namespaces may: moving them can give several the same name.
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

// checkIdentity reports what an object needs to be created at all.
func checkIdentity(u *unstructured.Unstructured, report func(path, message string)) {
	for _, need := range []struct{ path, value string }{
		{".apiVersion", u.GetAPIVersion()}, {".kind", u.GetKind()}, {".metadata.name", u.GetName()},
	} {
		if need.value == "" {
			report(need.path, "it is required")
		}
	}
}

// typedReplicas turns spec.replicas of a workload from a string into the number that it spells, so that a variable can
// stand there.
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

// Namespace returns where the agent runs on the managed cluster (contract, hub 6.6): where the configuration says;
// else where the first Deployment of the template is; else the first DaemonSet; else the default. The error is an
// addon.InvalidError.
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

// describeObject is kind, namespace and name of an object.
func describeObject(u *unstructured.Unstructured) string {
	name := u.GetName()
	if namespace := u.GetNamespace(); namespace != "" {
		name = namespace + "/" + name
	}
	return strings.TrimSpace(cmp.Or(u.GetKind(), "no kind") + " " + name)
}
