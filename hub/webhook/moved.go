package webhook

import (
	"slices"

	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"

	"github.com/spokelet/spokelet/internal/addonapi"
)

const inRegistrations, inReferences = "registrations", "configReferences"

// mover says where the other version has a field of the status.
type mover struct {
	// object is the converted object, in the one before.
	object map[string]any
	in     any
	// registrations and references are the indexes in v1alpha1 of the lists of v1beta1.
	registrations, references []int
}

func newMover(object map[string]any, in any) *mover {
	m := &mover{object: object, in: in}
	if beta, is := in.(*addonv1beta1.ManagedClusterAddOn); is {
		m.registrations, m.references = addonapi.AlphaPositions(beta)
	}
	return m
}

// moved returns where the other version has a field.
func (m *mover) moved(path []any) []any {
	if len(path) < 2 || path[0] != inStatus {
		return path
	}
	path = slices.Clone(path)
	switch m.in.(type) {
	case *addonv1alpha1.ClusterManagementAddOn:
		rename(path, "defaultconfigReferences", "defaultConfigReferences")
	case *addonv1beta1.ClusterManagementAddOn:
		rename(path, "defaultConfigReferences", "defaultconfigReferences")
	case *addonv1alpha1.ManagedClusterAddOn:
		return m.intoRegistration(path)
	case *addonv1beta1.ManagedClusterAddOn:
		return m.outOfRegistration(path)
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
func (m *mover) intoRegistration(path []any) []any {
	if len(path) < 4 || path[1] != inRegistrations || path[3] != "subject" {
		return path
	}
	list, _ := nested(m.object, inStatus, inRegistrations).([]any)
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
func (m *mover) outOfRegistration(path []any) []any {
	if len(path) < 3 {
		return path
	}
	i, _ := path[2].(int)
	switch {
	case path[1] == inReferences && i < len(m.references):
		path[2] = m.references[i]
	case path[1] == inRegistrations && i < len(m.registrations):
		path[2] = m.registrations[i]
		if len(path) > 4 && path[4] == "subject" && (path[3] == "kubeClient" || path[3] == "customSigner") {
			path = slices.Delete(path, 3, 4)
		}
	}
	return path
}
