package addon

import (
	"context"
	"fmt"
	"regexp"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
)

// AddOnDeploymentConfigGVR is the resource of AddOnDeploymentConfigs, for Options.ConfigGVRs.
func AddOnDeploymentConfigGVR() schema.GroupVersionResource { //nolint:revive // authors know it by this name
	return schema.GroupVersionResource{
		Group: addonv1beta1.GroupName, Version: addonv1beta1.GroupVersion.Version, Resource: "addondeploymentconfigs",
	}
}

// deploymentConfigs is their kind in the specs of add-ons.
func deploymentConfigs() addonv1beta1.ConfigGroupResource {
	resource := AddOnDeploymentConfigGVR()
	return addonv1beta1.ConfigGroupResource{Group: resource.Group, Resource: resource.Resource}
}

// AddOnDeploymentConfigToValuesFunc converts an AddOnDeploymentConfig to values.
//
//nolint:revive // authors know it by this name
type AddOnDeploymentConfigToValuesFunc func(config addonv1beta1.AddOnDeploymentConfig) (Values, error)

// GetAddOnDeploymentConfigValues returns a ValuesFunc with the values of the AddOnDeploymentConfig that counts, by all
// conversions, merged in order. Without such a configuration there are no values.
func GetAddOnDeploymentConfigValues(conversions ...AddOnDeploymentConfigToValuesFunc) ValuesFunc {
	return func(_ context.Context, request Request) (Values, error) {
		config, err := GetAddOnDeploymentConfig(request)
		if err != nil {
			return nil, err
		}
		merged := Values{}
		if config == nil {
			return merged, nil
		}
		for _, convert := range conversions {
			values, err := convert(*config.DeepCopy())
			if err != nil {
				return nil, fmt.Errorf("converting AddOnDeploymentConfig %s/%s: %w", config.Namespace, config.Name, err)
			}
			merged = MergeValues(merged, values)
		}
		return merged, nil
	}
}

// GetAddOnDeploymentConfig returns a copy of the AddOnDeploymentConfig that counts of those that the rollout chose; nil
// when there is none. The error is an InvalidError, or a NotReadyError while its content is not known.
func GetAddOnDeploymentConfig(request Request) (*addonv1beta1.AddOnDeploymentConfig, error) {
	chosen := request.Choice.Counting(deploymentConfigs())
	if chosen == nil {
		return nil, nil // none is an answer
	}
	return readDeploymentConfig(*chosen)
}

// GetAddOnDeploymentConfigs returns copies of all AddOnDeploymentConfigs that the rollout chose, in order, for an
// add-on that merges them. The error is an InvalidError, or a NotReadyError while a content is not known.
func GetAddOnDeploymentConfigs(request Request) ([]addonv1beta1.AddOnDeploymentConfig, error) {
	var all []addonv1beta1.AddOnDeploymentConfig
	for _, chosen := range request.Choice.Configs {
		if chosen.ConfigGroupResource != deploymentConfigs() {
			continue
		}
		config, err := readDeploymentConfig(chosen)
		if err != nil {
			return nil, err
		}
		all = append(all, *config)
	}
	return all, nil
}

func readDeploymentConfig(chosen ChosenConfig) (*addonv1beta1.AddOnDeploymentConfig, error) {
	if chosen.Object == nil {
		return nil, &NotReadyError{Message: fmt.Sprintf("the content of AddOnDeploymentConfig %s/%s is not known",
			chosen.Namespace, chosen.Name)}
	}
	var config addonv1beta1.AddOnDeploymentConfig
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(chosen.Object.Object, &config); err != nil {
		return nil, &InvalidError{Message: fmt.Sprintf("AddOnDeploymentConfig %s/%s cannot be read: %v",
			chosen.Namespace, chosen.Name, err)}
	}
	return config.DeepCopy(), nil
}

// AgentInstallNamespaceFromDeploymentConfig is a function for Options.InstallNamespace: it returns
// spec.agentInstallNamespace of the AddOnDeploymentConfig that counts; empty without one.
func AgentInstallNamespaceFromDeploymentConfig(_ context.Context, request Request) (string, error) {
	config, err := GetAddOnDeploymentConfig(request)
	if err != nil || config == nil {
		return "", err
	}
	return config.Spec.AgentInstallNamespace, nil
}

// ToAddOnCustomizedVariableValues returns the customized variables: each name with its text. A dot in a name has no
// meaning.
func ToAddOnCustomizedVariableValues(config addonv1beta1.AddOnDeploymentConfig) (Values, error) {
	values := Values{}
	for _, variable := range config.Spec.CustomizedVariables {
		values[variable.Name] = variable.Value
	}
	return values, nil
}

// ToAddOnDeploymentConfigValues returns values for Go templates: the customized variables, and those of NodeSelector,
// Tolerations, HTTPProxy, HTTPSProxy, NoProxy, ProxyCABundle and ResourceRequirements that the configuration sets, in
// Go types.
func ToAddOnDeploymentConfigValues(config addonv1beta1.AddOnDeploymentConfig) (Values, error) {
	values, err := ToAddOnCustomizedVariableValues(config)
	if err != nil {
		return nil, err
	}
	if placement := config.Spec.NodePlacement; placement != nil {
		values["NodeSelector"], values["Tolerations"] = placement.NodeSelector, placement.Tolerations
	}
	proxy := config.Spec.ProxyConfig
	for _, setting := range []struct{ name, value string }{
		{"HTTPProxy", proxy.HTTPProxy}, {"HTTPSProxy", proxy.HTTPSProxy}, {"NoProxy", proxy.NoProxy},
		{"ProxyCABundle", string(proxy.CABundle)},
	} {
		if setting.value != "" {
			values[setting.name] = setting.value
		}
	}
	if len(config.Spec.ResourceRequirements) > 0 {
		if values["ResourceRequirements"], err = GetRegexResourceRequirements(config.Spec.ResourceRequirements); err != nil {
			return nil, err
		}
	}
	return values, nil
}

// ToAddOnNodePlacementValues returns values for charts: global.nodeSelector and tolerations. Without a node placement
// there are none.
func ToAddOnNodePlacementValues(config addonv1beta1.AddOnDeploymentConfig) (Values, error) {
	placement := config.Spec.NodePlacement
	if placement == nil {
		return nil, nil
	}
	type global struct {
		NodeSelector map[string]string `json:"nodeSelector"`
	}
	return JSONStructToValues(struct {
		Tolerations []corev1.Toleration `json:"tolerations"`
		Global      global              `json:"global"`
	}{placement.Tolerations, global{placement.NodeSelector}})
}

// ToAddOnProxyConfigValues returns values for charts: those of HTTP_PROXY, HTTPS_PROXY, NO_PROXY and PROXY_CA_BUNDLE in
// global.proxyConfig that the configuration sets; the others stay as the chart has them. Without a proxy for HTTP or
// HTTPS there are none.
func ToAddOnProxyConfigValues(config addonv1beta1.AddOnDeploymentConfig) (Values, error) {
	proxy := config.Spec.ProxyConfig
	if proxy.HTTPProxy == "" && proxy.HTTPSProxy == "" {
		return nil, nil
	}
	settings := map[string]any{}
	for _, setting := range []struct{ name, value string }{
		{"HTTP_PROXY", proxy.HTTPProxy}, {"HTTPS_PROXY", proxy.HTTPSProxy}, {"NO_PROXY", proxy.NoProxy},
		{"PROXY_CA_BUNDLE", string(proxy.CABundle)},
	} {
		if setting.value != "" {
			settings[setting.name] = setting.value
		}
	}
	return Values{"global": map[string]any{"proxyConfig": settings}}, nil
}

// RegexResourceRequirements are the resources of the containers whose id matches a regular expression.
type RegexResourceRequirements struct {
	// ContainerIDRegex matches ids such as deployments:agent:main: resource, object and container.
	ContainerIDRegex string `json:"containerIDRegex"`
	// Resources are the resources as text, which templates can print.
	Resources ResourceTexts `json:"resources"`
	// ResourcesRaw are the same as quantities.
	ResourcesRaw corev1.ResourceRequirements `json:"resourcesRaw"`
}

// ResourceTexts are limits and requests as text, by the names of the resources.
type ResourceTexts struct {
	// Limits are the limits.
	Limits map[string]string `json:"limits,omitempty"`
	// Requests are the requests.
	Requests map[string]string `json:"requests,omitempty"`
}

// GetRegexResourceRequirements returns resource requirements with a regular expression in place of the container id, in
// which "*" stands for one or more characters. Of several that match a container, the last counts. The error is an
// InvalidError about an id that has not three parts.
func GetRegexResourceRequirements(
	requirements []addonv1beta1.ContainerResourceRequirements,
) ([]RegexResourceRequirements, error) {
	all := make([]RegexResourceRequirements, 0, len(requirements))
	for _, requirement := range requirements {
		if strings.Count(requirement.ContainerID, ":") != 2 {
			return nil, &InvalidError{Message: fmt.Sprintf("the containerID %q of resourceRequirements is not of the form "+
				"deployments:agent:main: resource, object and container, each of which may be *", requirement.ContainerID)}
		}
		all = append(all, RegexResourceRequirements{
			ContainerIDRegex: "^" + strings.ReplaceAll(regexp.QuoteMeta(requirement.ContainerID), `\*`, ".+") + "$",
			Resources: ResourceTexts{
				Limits: asText(requirement.Resources.Limits), Requests: asText(requirement.Resources.Requests),
			},
			ResourcesRaw: requirement.Resources,
		})
	}
	return all, nil
}

func asText(list corev1.ResourceList) map[string]string {
	if len(list) == 0 {
		return nil
	}
	all := make(map[string]string, len(list))
	for name, quantity := range list {
		all[string(name)] = quantity.String()
	}
	return all
}

// ToAddOnResourceRequirementsValues returns values for charts: the list global.resourceRequirements, whose items have
// containerIDRegex, resources and resourcesRaw. Without resource requirements there are none; an empty list of them is
// an empty list.
func ToAddOnResourceRequirementsValues(config addonv1beta1.AddOnDeploymentConfig) (Values, error) {
	if config.Spec.ResourceRequirements == nil {
		return nil, nil
	}
	requirements, err := GetRegexResourceRequirements(config.Spec.ResourceRequirements)
	if err != nil {
		return nil, err
	}
	type global struct {
		ResourceRequirements []RegexResourceRequirements `json:"resourceRequirements"`
	}
	return JSONStructToValues(struct {
		Global global `json:"global"`
	}{global{requirements}})
}
