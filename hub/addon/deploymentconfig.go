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

// AddOnDeploymentConfigToValuesFunc converts an AddOnDeploymentConfig to values.
//
//nolint:revive // authors know it by this name
type AddOnDeploymentConfigToValuesFunc func(config addonv1beta1.AddOnDeploymentConfig) (Values, error)

// GetAddOnDeploymentConfigValues returns a ValuesFunc with the values of the AddOnDeploymentConfigs that the rollout
// chose, by all conversions, merged in order. Without such a configuration there are no values.
func GetAddOnDeploymentConfigValues(conversions ...AddOnDeploymentConfigToValuesFunc) ValuesFunc {
	return func(_ context.Context, request Request) (Values, error) {
		configs, err := GetAddOnDeploymentConfigs(request)
		if err != nil {
			return nil, err
		}
		merged := Values{}
		for _, config := range configs {
			for _, convert := range conversions {
				values, err := convert(config)
				if err != nil {
					return nil, fmt.Errorf("converting AddOnDeploymentConfig %s/%s: %w", config.Namespace, config.Name, err)
				}
				merged = MergeValues(merged, values)
			}
		}
		return merged, nil
	}
}

// GetAddOnDeploymentConfigs returns copies of the AddOnDeploymentConfigs that the rollout chose, in order. The error is
// an InvalidError, or a NotReadyError while a content is not known.
func GetAddOnDeploymentConfigs(request Request) ([]addonv1beta1.AddOnDeploymentConfig, error) {
	resource := AddOnDeploymentConfigGVR()
	var all []addonv1beta1.AddOnDeploymentConfig
	for _, chosen := range request.Choice.Configs {
		if chosen.Group != resource.Group || chosen.Resource != resource.Resource {
			continue
		}
		if chosen.Object == nil {
			return nil, &NotReadyError{Message: fmt.Sprintf("the content of AddOnDeploymentConfig %s/%s is not known",
				chosen.Namespace, chosen.Name)}
		}
		var config addonv1beta1.AddOnDeploymentConfig
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(chosen.Object.Object, &config); err != nil {
			return nil, &InvalidError{Message: fmt.Sprintf("AddOnDeploymentConfig %s/%s cannot be read: %v",
				chosen.Namespace, chosen.Name, err)}
		}
		all = append(all, *config.DeepCopy())
	}
	return all, nil
}

// AgentInstallNamespaceFromDeploymentConfig is a function for Options.InstallNamespace: it returns
// spec.agentInstallNamespace of the first AddOnDeploymentConfig; empty without one.
func AgentInstallNamespaceFromDeploymentConfig(_ context.Context, request Request) (string, error) {
	configs, err := GetAddOnDeploymentConfigs(request)
	if err != nil || len(configs) == 0 {
		return "", err
	}
	return configs[0].Spec.AgentInstallNamespace, nil
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
		values["ResourceRequirements"] = GetRegexResourceRequirements(config.Spec.ResourceRequirements)
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

// ToAddOnProxyConfigValues returns values for charts: HTTP_PROXY, HTTPS_PROXY, NO_PROXY and PROXY_CA_BUNDLE in
// global.proxyConfig. Without a proxy for HTTP or HTTPS there are none.
func ToAddOnProxyConfigValues(config addonv1beta1.AddOnDeploymentConfig) (Values, error) {
	proxy := config.Spec.ProxyConfig
	if proxy.HTTPProxy == "" && proxy.HTTPSProxy == "" {
		return nil, nil
	}
	return Values{"global": map[string]any{"proxyConfig": map[string]any{
		"HTTP_PROXY": proxy.HTTPProxy, "HTTPS_PROXY": proxy.HTTPSProxy, "NO_PROXY": proxy.NoProxy,
		"PROXY_CA_BUNDLE": string(proxy.CABundle),
	}}}, nil
}

// RegexResourceRequirements are the resources of the containers whose id matches a regular expression.
type RegexResourceRequirements struct {
	// ContainerIDRegex matches ids such as deployments:agent:main: resource, object and container.
	ContainerIDRegex string `json:"containerIDRegex"`
	// Resources are the resources as quantities.
	Resources corev1.ResourceRequirements `json:"resources"`
	// ResourcesRaw are the same as text.
	ResourcesRaw ResourceRequirementsRaw `json:"resourcesRaw"`
}

// ResourceRequirementsRaw are limits and requests as text, by the names of the resources.
type ResourceRequirementsRaw struct {
	// Limits are the limits.
	Limits map[string]string `json:"limits,omitempty"`
	// Requests are the requests.
	Requests map[string]string `json:"requests,omitempty"`
}

// GetRegexResourceRequirements returns resource requirements with a regular expression in place of the container id, in
// which "*" stands for one or more characters. Of several that match a container, the last counts.
func GetRegexResourceRequirements(
	requirements []addonv1beta1.ContainerResourceRequirements,
) []RegexResourceRequirements {
	all := make([]RegexResourceRequirements, 0, len(requirements))
	for _, requirement := range requirements {
		all = append(all, RegexResourceRequirements{
			ContainerIDRegex: "^" + strings.ReplaceAll(regexp.QuoteMeta(requirement.ContainerID), `\*`, ".+") + "$",
			Resources:        requirement.Resources,
			ResourcesRaw: ResourceRequirementsRaw{
				Limits: asText(requirement.Resources.Limits), Requests: asText(requirement.Resources.Requests),
			},
		})
	}
	return all
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
// containerIDRegex, resources and resourcesRaw. Without resource requirements there are none.
func ToAddOnResourceRequirementsValues(config addonv1beta1.AddOnDeploymentConfig) (Values, error) {
	if len(config.Spec.ResourceRequirements) == 0 {
		return nil, nil
	}
	type global struct {
		ResourceRequirements []RegexResourceRequirements `json:"resourceRequirements"`
	}
	return JSONStructToValues(struct {
		Global global `json:"global"`
	}{global{GetRegexResourceRequirements(config.Spec.ResourceRequirements)}})
}
