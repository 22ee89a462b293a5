package confighash

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
)

const (
	// ResourceTemplate is the resource of AddOnTemplates, in group addonv1beta1.GroupName.
	ResourceTemplate = "addontemplates"
	// ResourceDeploymentConfig is the resource of AddOnDeploymentConfigs, in group addonv1beta1.GroupName.
	ResourceDeploymentConfig = "addondeploymentconfigs"
)

// Template is the resource of AddOnTemplates as an add-on refers to it.
func Template() addonv1beta1.ConfigGroupResource {
	return addonv1beta1.ConfigGroupResource{Group: addonv1beta1.GroupName, Resource: ResourceTemplate}
}

// DeploymentConfig is the resource of AddOnDeploymentConfigs as an add-on refers to it.
func DeploymentConfig() addonv1beta1.ConfigGroupResource {
	return addonv1beta1.ConfigGroupResource{Group: addonv1beta1.GroupName, Resource: ResourceDeploymentConfig}
}

// Kind returns the kind, and the version in which it is read and hashed, of a resource that every hub knows; false for
// every other resource.
func Kind(resource addonv1beta1.ConfigGroupResource) (schema.GroupVersionKind, bool) {
	switch resource {
	case Template():
		return schema.GroupVersionKind{Group: addonv1beta1.GroupName, Version: "v1alpha1", Kind: "AddOnTemplate"}, true
	case DeploymentConfig():
		return schema.GroupVersionKind{
			Group: addonv1beta1.GroupName, Version: "v1beta1", Kind: "AddOnDeploymentConfig",
		}, true
	}
	return schema.GroupVersionKind{}, false
}

// New returns an empty object of a resource that every hub knows, to be read or watched; false for every other one.
func New(resource addonv1beta1.ConfigGroupResource) (*unstructured.Unstructured, bool) {
	kind, known := Kind(resource)
	if !known {
		return nil, false
	}
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(kind)
	return u, true
}
