package template

const (
	// variableKubeconfig is the path of the agent's kubeconfig for the hub.
	variableKubeconfig = "HUB_KUBECONFIG"
	// variableCluster is the name of the managed cluster.
	variableCluster = "CLUSTER_NAME"
	// variableNamespace is the namespace that the AddOnDeploymentConfig moves the agent to; undefined without one.
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
	values map[string]string
	// injected are the variables that containers get in their environment, in order.
	injected []variable
}

// variablesOf returns the variables; later ones override earlier ones.
func variablesOf(in Input) variables {
	v := variables{values: map[string]string{}}
	var fromDefaults, builtIn []string
	if len(in.Template.Registration) > 0 {
		v.values[variableKubeconfig] = kubeconfigPath
		fromDefaults = append(fromDefaults, variableKubeconfig)
	}
	if in.Config != nil {
		for _, custom := range in.Config.Spec.CustomizedVariables {
			v.values[custom.Name] = custom.Value
		}
	}
	v.values[variableCluster] = in.Cluster.Name
	builtIn = append(builtIn, variableCluster)
	if namespace := in.installNamespace(); namespace != "" {
		v.values[variableNamespace] = namespace
		builtIn = append(builtIn, variableNamespace)
	}
	for _, name := range append(fromDefaults, builtIn...) {
		v.injected = append(v.injected, variable{name, v.values[name]})
	}
	return v
}
