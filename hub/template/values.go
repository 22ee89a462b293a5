package template

import (
	"fmt"

	"github.com/spokelet/spokelet/internal/names"
)

const (
	// variableKubeconfig is the path of the agent's kubeconfig for the hub.
	variableKubeconfig = "HUB_KUBECONFIG"
	// variableCluster is the name of the managed cluster.
	variableCluster = "CLUSTER_NAME"
	// variableNamespace is the namespace that the AddOnDeploymentConfig moves the agent to, else the default one.
	variableNamespace = "INSTALL_NAMESPACE"

	// kubeconfigMount is where the Secret with the kubeconfig is mounted.
	kubeconfigMount = "/managed/hub-kubeconfig"
	// kubeconfigPath is the default value of variableKubeconfig.
	kubeconfigPath = kubeconfigMount + "/kubeconfig"
)

// variable is a name with its value.
type variable struct{ name, value string }

// variables are the values that a template may use (docs/reference/hub.md, "Values of a template").
type variables struct {
	// constant cannot be overridden; custom is what the configuration defines, standard counts where nothing else does.
	constant, standard []variable
	custom             map[string]string
}

// variablesOf returns the variables for a template with these registrations.
func variablesOf(in Input, t *Template) variables {
	v := variables{constant: []variable{{variableCluster, in.Cluster.Name}}}
	if len(t.Registration) > 0 {
		v.standard = []variable{{variableKubeconfig, kubeconfigPath}}
	}
	if in.Config != nil {
		v.custom = make(map[string]string, len(in.Config.Spec.CustomizedVariables))
		for _, custom := range in.Config.Spec.CustomizedVariables { // of two of a name, the last counts
			v.custom[custom.Name] = custom.Value
		}
	}
	if namespace := in.installNamespace(); namespace != "" {
		v.constant = append(v.constant, variable{variableNamespace, namespace})
	}
	return v
}

// value returns the value of a variable; false for none. The default namespace is not in the environment of containers,
// so it replaces no pod.
func (v *variables) value(name string) (string, bool) {
	value, found := v.defined(name)
	if !found && name == variableNamespace {
		return names.NamespaceAgentAddon, true
	}
	return value, found
}

// valueInName is value for a part of a name. OCM has nothing for the default namespace, and an object of a cluster that
// comes from there keeps its name.
func (v *variables) valueInName(name string) (string, bool) {
	value, found := v.defined(name)
	return value, found || name == variableNamespace
}

// defined returns what the configuration or the hub manager defines a variable as; false for nothing.
func (v *variables) defined(name string) (string, bool) {
	for _, fixed := range v.constant {
		if fixed.name == name {
			return fixed.value, true
		}
	}
	if value, found := v.custom[name]; found {
		return value, true
	}
	for _, fallback := range v.standard {
		if fallback.name == name {
			return fallback.value, true
		}
	}
	return "", false
}

// environment returns the variables that containers get in their environment, in order: those that the hub manager
// defines, with the values that count.
func (v *variables) environment() []variable {
	all := make([]variable, 0, len(v.standard)+len(v.constant))
	for _, fallback := range v.standard {
		value, _ := v.defined(fallback.name)
		all = append(all, variable{fallback.name, value})
	}
	return append(all, v.constant...)
}

// Remarks returns what a configuration states in vain, one sentence each: values for variables that only the hub
// manager defines. They are no errors.
func Remarks(in Input) []string {
	if in.Config == nil {
		return nil
	}
	v := variablesOf(in, in.Template)
	var all []string
	for _, custom := range in.Config.Spec.CustomizedVariables {
		for _, fixed := range v.constant {
			if fixed.name == custom.Name {
				all = append(all, fmt.Sprintf("AddOnDeploymentConfig %s/%s: the customizedVariables entry %s does not count, "+
					"because the hub manager defines %s as %q; remove the entry.",
					in.Config.Namespace, in.Config.Name, fixed.name, fixed.name, fixed.value))
			}
		}
	}
	return all
}
