package addon

import (
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"

	"github.com/spokelet/spokelet/internal/names"
)

// removal is which of our Secrets go.
type removal string

const (
	// removeNone keeps all.
	removeNone removal = "none"
	// removeStale removes those that no registration needs, once all registrations are served.
	removeStale removal = "stale"
	// removeAll removes all.
	removeAll removal = "all"
)

// place is where an add-on agent runs.
type place struct {
	side      side
	namespace string
	// hosting is the cluster that the add-on names as its host; empty for none.
	hosting string
	// problem says why namespace cannot be one, for people; empty when it can.
	problem string
}

// lease is the target that is the lease of the add-on agent.
func (p place) lease(addon string) target {
	return target{side: p.side, kind: kindLease, namespace: p.namespace, name: addon}
}

// plan is what a pass does.
type plan struct {
	place place
	// declare is the driver that is to be written to the registrations; empty leaves them.
	declare string
	// serve are the credentials to be had.
	serve []registration
	// refused are the registrations that cannot be served, and why.
	refused []result
	// waits tells that there are registrations for which the hub must move first.
	waits bool
	// remove is which Secrets go.
	remove removal
	// watch is what is to be watched for the add-on.
	watch []target
	// available is the health to tell; nil leaves it.
	available *metav1.Condition
	// explain tells that the message of available is to go on with the likely cause.
	explain bool
	// wake is when the health has to be looked at again.
	wake time.Time
}

// decide returns what a pass does.
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

// placeOf says where the add-on agent runs (contract, registration 2.4).
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
	return p
}

// planRemoval decides which Secrets go. An add-on that is being deleted keeps them for its last duties, and an empty
// list of registrations counts only when the hub says that it is meant.
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
