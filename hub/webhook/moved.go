package webhook

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"

	"github.com/spokelet/spokelet/internal/addonapi"
)

const inRegistrations, inReferences = "registrations", "configReferences"

// moved returns where the other version has a field of the status. object is the converted object, in the one before.
func moved(object map[string]any, in any, path []any) []any {
	if len(path) < 2 || path[0] != inStatus {
		return path
	}
	path = slices.Clone(path)
	switch in := in.(type) {
	case *addonv1alpha1.ClusterManagementAddOn:
		rename(path, "defaultconfigReferences", "defaultConfigReferences")
	case *addonv1beta1.ClusterManagementAddOn:
		rename(path, "defaultConfigReferences", "defaultconfigReferences")
	case *addonv1alpha1.ManagedClusterAddOn:
		return intoRegistration(object, path)
	case *addonv1beta1.ManagedClusterAddOn:
		return outOfRegistration(in, path)
	}
	return path
}

// rename gives a part of the status the name of the other version.
func rename(path []any, from, to string) {
	if path[1] == from {
		path[1] = to
	}
}

// intoRegistration returns the place of a field in v1beta1, where the subject of a registration is a level deeper.
func intoRegistration(object map[string]any, path []any) []any {
	if len(path) < 4 || path[1] != inRegistrations || path[3] != "subject" {
		return path
	}
	list, _, _ := unstructured.NestedSlice(object, inStatus, inRegistrations)
	if i, ok := path[2].(int); ok && i < len(list) {
		registration, _ := list[i].(map[string]any)
		for _, kind := range []string{"kubeClient", "customSigner"} {
			if _, is := registration[kind]; is {
				return slices.Insert(path, 3, any(kind))
			}
		}
	}
	return path
}

// outOfRegistration returns the place of a field in v1alpha1, which may lack elements of the lists of v1beta1.
func outOfRegistration(in *addonv1beta1.ManagedClusterAddOn, path []any) []any {
	if len(path) < 3 {
		return path
	}
	registrations, references := addonapi.AlphaPositions(in)
	i, _ := path[2].(int)
	switch {
	case path[1] == inReferences && i < len(references):
		path[2] = references[i]
	case path[1] == inRegistrations && i < len(registrations):
		path[2] = registrations[i]
		if len(path) > 4 && path[4] == "subject" && (path[3] == "kubeClient" || path[3] == "customSigner") {
			path = slices.Delete(path, 3, 4)
		}
	}
	return path
}
