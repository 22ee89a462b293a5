package template

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/spokelet/spokelet/hub/addon"
	"github.com/spokelet/spokelet/internal/confighash"
	"github.com/spokelet/spokelet/internal/names"
)

// Template is the supported part of an AddOnTemplate. It is never changed, and shares memory with the object that it
// was read from.
type Template struct {
	// Name is the name of the AddOnTemplate.
	Name string
	// AddOn is spec.addonName: the name of the add-on that the template is for.
	AddOn string
	// Manifests are the objects of the agent, with variables in them.
	Manifests []map[string]any
	// ManifestConfigs are the feedback rules and update strategies of the manifests.
	ManifestConfigs []workv1.ManifestConfigOption
	// Registration lists the credentials and permissions of the agent on the hub.
	Registration []addonv1alpha1.RegistrationSpec

	// everywhere are the ClusterRoles of permissions of type AllNamespaces, by the indexes of registration and permission:
	// the API module has no type for them.
	everywhere map[[2]int]string
	// probe is the value of the annotation that selects the health probe.
	probe string
}

// spec is the part of an AddOnTemplate that is decoded into Go types.
type spec struct {
	AddonName string `json:"addonName"`
	AgentSpec struct {
		ManifestConfigs []workv1.ManifestConfigOption `json:"manifestConfigs"`
	} `json:"agentSpec"`
	Registration []addonv1alpha1.RegistrationSpec `json:"registration"`
}

// allNamespaces is the part of the registrations for which the API module has no types.
type allNamespaces struct {
	Registration []struct {
		KubeClient struct {
			HubPermissions []struct {
				AllNamespaces struct {
					ClusterRoleName string `json:"clusterRoleName"`
				} `json:"allNamespaces"`
			} `json:"hubPermissions"`
		} `json:"kubeClient"`
	} `json:"registration"`
}

// roles returns the ClusterRoles that are named, by the indexes of registration and permission.
func (a allNamespaces) roles() map[[2]int]string {
	var named map[[2]int]string
	for i, registration := range a.Registration {
		for j, permission := range registration.KubeClient.HubPermissions {
			if role := permission.AllNamespaces.ClusterRoleName; role != "" {
				if named == nil {
					named = map[[2]int]string{}
				}
				named[[2]int{i, j}] = role
			}
		}
	}
	return named
}

// unpacked returns a configuration with its content. The error is an addon.InvalidError.
func unpacked(u *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	whole, err := confighash.Unpack(u)
	if err != nil {
		return nil, &addon.InvalidError{Message: err.Error()}
	}
	return whole, nil
}

// ReadTemplate reads an AddOnTemplate in any version: all have the same fields. The error is an addon.InvalidError.
func ReadTemplate(u *unstructured.Unstructured) (*Template, error) {
	invalid := func(err error) error {
		return &addon.InvalidError{Message: fmt.Sprintf("AddOnTemplate %s cannot be read: %v", u.GetName(), err)}
	}
	u, err := unpacked(u)
	if err != nil {
		return nil, err
	}
	content, _, err := unstructured.NestedMap(map[string]any{"spec": withoutManifests(u)}, "spec")
	if err != nil {
		return nil, invalid(err)
	}
	var typed spec
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(content, &typed); err != nil {
		return nil, invalid(err)
	}
	var untyped allNamespaces
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(content, &untyped); err != nil {
		return nil, invalid(err)
	}
	raw, _, err := unstructured.NestedFieldNoCopy(u.Object, "spec", "agentSpec", "workload", "manifests")
	if err != nil {
		return nil, invalid(err)
	}
	t := &Template{
		Name: u.GetName(), AddOn: typed.AddonName, ManifestConfigs: typed.AgentSpec.ManifestConfigs,
		Registration: typed.Registration, everywhere: untyped.roles(),
		probe: u.GetAnnotations()[names.AnnotationHealthProbe],
	}
	manifests, _ := raw.([]any)
	for i, manifest := range manifests {
		object, ok := manifest.(map[string]any)
		if !ok {
			return nil, invalid(fmt.Errorf("manifest %d is no object", i))
		}
		t.Manifests = append(t.Manifests, object)
	}
	return t, nil
}

// withoutManifests returns the spec without its manifests, which are large and stay unstructured.
func withoutManifests(u *unstructured.Unstructured) map[string]any {
	from, _ := u.Object["spec"].(map[string]any)
	to := map[string]any{}
	for _, key := range []string{"addonName", "registration"} {
		if value, found := from[key]; found {
			to[key] = value
		}
	}
	if agentSpec, ok := from["agentSpec"].(map[string]any); ok && agentSpec["manifestConfigs"] != nil {
		to["agentSpec"] = map[string]any{"manifestConfigs": agentSpec["manifestConfigs"]}
	}
	return to
}

// ReadConfig reads an AddOnDeploymentConfig, which must have been read as v1beta1, and the replicas that it asks for.
// The error is an addon.InvalidError.
func ReadConfig(
	u *unstructured.Unstructured,
) (*addonv1beta1.AddOnDeploymentConfig, []addon.ReplicaConfig, error) {
	config := &addonv1beta1.AddOnDeploymentConfig{}
	u, err := unpacked(u)
	if err != nil {
		return nil, nil, err
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, config); err != nil {
		return nil, nil, &addon.InvalidError{Message: fmt.Sprintf("AddOnDeploymentConfig %s/%s cannot be read: %v",
			u.GetNamespace(), u.GetName(), err)}
	}
	replicas, err := addon.ReadReplicaConfigs(u)
	if err != nil {
		return nil, nil, err
	}
	return config, replicas, nil
}

// health returns the health probe of the agent (docs/adr/0021-works-of-an-add-on.md).
func (t *Template) health() (addon.HealthProbe, error) {
	switch t.probe {
	case "":
		return addon.HealthWorkloads, nil
	case string(addon.HealthLease):
		return addon.HealthLease, nil
	}
	return addon.HealthUnchanged, &addon.InvalidError{Message: fmt.Sprintf(
		"AddOnTemplate %s: the value %q of annotation %s is unknown; write %s, or remove the annotation to have the "+
			"Deployments and DaemonSets looked at", t.Name, t.probe, names.AnnotationHealthProbe, addon.HealthLease)}
}
