package addon

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/util/validation"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"

	"github.com/spokelet/spokelet/internal/names"
)

// decide returns the plan of a pass.
func decide(f facts) plan {
	if f.addon == nil {
		return plan{remove: removeAll}
	}
	p := plan{place: placeOf(f)}
	p.planRegistrations(f)
	p.planRemoval(f)
	p.planHealth(f)
	return p
}

// placeOf returns the place where the add-on agent runs (docs/reference/registration.md, "Where an add-on runs").
func placeOf(f facts) place {
	p := place{side: sideAgent, namespace: f.addon.Status.Namespace}
	if p.namespace == "" {
		p.namespace = f.addon.Annotations[names.AnnotationInstallNamespace]
	}
	if p.namespace == "" {
		p.namespace = names.NamespaceAgentAddon
	}
	if problems := validation.IsDNS1123Label(p.namespace); len(problems) > 0 {
		p.problem = fmt.Sprintf("namespace %q of the add-on agent can be no namespace: %s; it comes from status.namespace "+
			"or, where that is empty, from annotation %s", p.namespace, strings.Join(problems, "; "),
			names.AnnotationInstallNamespace)
	}
	p.hosting = f.addon.Annotations[names.AnnotationHostingCluster]
	if f.split && p.hosting == "" {
		p.side = sideSpoke
	}
	if p.problem == "" && f.split && p.side == sideAgent && len(f.hostedNamespaces) > 0 &&
		!slices.Contains(f.hostedNamespaces, p.namespace) {
		p.problem = fmt.Sprintf("namespace %s of the add-on agent is on the hosting cluster, where the klusterlet serves "+
			"add-ons only in %s: name it in --hosted-addon-namespaces of the klusterlet, and give the klusterlet its rights in "+
			"the namespace", p.namespace, strings.Join(f.hostedNamespaces, ", "))
	}
	return p
}

// planRemoval selects the Secrets to delete. An add-on that is being deleted keeps them for its cleanup, and an empty
// list of registrations counts only when the hub has set RegistrationApplied.
func (p *plan) planRemoval(f facts) {
	p.remove = removeStale
	switch {
	case !f.addon.DeletionTimestamp.IsZero():
		p.remove = removeNone
	case len(f.addon.Status.Registrations) > 0:
	case meta.IsStatusConditionTrue(f.addon.Status.Conditions, addonv1beta1.ManagedClusterAddOnRegistrationApplied):
		p.remove = removeAll
	default:
		p.remove = removeNone
	}
}
