package confighash

import (
	"cmp"

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

// Resources returns the resources of the configurations that every hub knows.
func Resources() []addonv1beta1.ConfigGroupResource {
	return []addonv1beta1.ConfigGroupResource{Template(), DeploymentConfig()}
}

// Kind returns the kind of a resource that every hub knows, in the version in which it is read and hashed; false for
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

// Versions are the served versions of the configurations. The fields, and so the hashes, are the same in all versions.
type Versions struct {
	// Template is the version of AddOnTemplates, and DeploymentConfig that of AddOnDeploymentConfigs; empty means the one
	// that Kind returns.
	Template, DeploymentConfig string
}

// Kind is like the function Kind, with the served version.
func (v Versions) Kind(resource addonv1beta1.ConfigGroupResource) (schema.GroupVersionKind, bool) {
	kind, known := Kind(resource)
	switch resource {
	case Template():
		kind.Version = cmp.Or(v.Template, kind.Version)
	case DeploymentConfig():
		kind.Version = cmp.Or(v.DeploymentConfig, kind.Version)
	}
	return kind, known
}

// New returns an empty object of a resource that every hub knows; false for every other resource.
func (v Versions) New(resource addonv1beta1.ConfigGroupResource) (*unstructured.Unstructured, bool) {
	kind, known := v.Kind(resource)
	if !known {
		return nil, false
	}
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(kind)
	return u, true
}

// New is Versions.New for a hub that serves the usual versions.
func New(resource addonv1beta1.ConfigGroupResource) (*unstructured.Unstructured, bool) {
	return Versions{}.New(resource)
}
