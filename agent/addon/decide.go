package addon

import (
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"

	"github.com/spokelet/spokelet/csr"
	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/lease"
)

const (
	// driverCSR is how we get credentials for the hub.
	driverCSR = "csr"
	// serviceAccountPrefix starts the user names that only agents with another driver write into a subject.
	serviceAccountPrefix = "system:serviceaccount:"
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
}

// lease is the target that is the lease of the add-on agent.
func (p place) lease(addon string) target {
	return target{side: p.side, lease: true, namespace: p.namespace, name: addon}
}

// registration is one credential to be had.
type registration struct {
	request csr.Request
	secret  types.NamespacedName
	// kubeconfig tells whether the Secret holds a kubeconfig for the hub.
	kubeconfig bool
}

// plan is what a pass does.
type plan struct {
	place place
	// declare tells that the driver is to be written to the registrations.
	declare bool
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
	p.hosting = f.addon.Annotations[names.AnnotationHostingCluster]
	if f.split && p.hosting == "" {
		p.side = sideSpoke
	}
	return p
}

// planRegistrations sorts the registrations into those to serve, those that cannot be and those that wait for the hub.
func (p *plan) planRegistrations(f facts) {
	bySecret := map[string]csr.Request{}
	for i, r := range f.addon.Status.Registrations {
		declared := true
		if r.Type == addonv1beta1.KubeClient {
			declared = r.KubeClient != nil && r.KubeClient.Driver == driverCSR
			p.declare = p.declare || !declared
		}
		request, err := csr.ForAddon(f.cluster, f.name, r)
		if err != nil {
			p.refuse(i, request.Signer, err.Error())
			continue
		}
		if !subjectSettled(r, declared) {
			p.waits = true
			continue
		}
		request.ExpirationSeconds = f.expirationSeconds
		secret := csr.AddonSecretName(f.name, r)
		if first, taken := bySecret[secret]; taken {
			if !equality.Semantic.DeepEqual(first, request) {
				p.refuse(i, request.Signer, fmt.Sprintf(
					"another registration before it has the same secret %s and another subject: only that is served", secret))
			}
			continue
		}
		bySecret[secret] = request
		p.serve = append(p.serve, registration{
			request: request, kubeconfig: r.Type == addonv1beta1.KubeClient,
			secret: types.NamespacedName{Namespace: p.place.namespace, Name: secret},
		})
	}
}

func (p *plan) refuse(index int, signer, why string) {
	p.refused = append(p.refused, result{
		signer: signer, condition: csr.NotStored(fmt.Sprintf("registrations[%d]: %s", index, why)),
	})
}

// subjectSettled tells whether the hub has said for whom the certificate is. Once the driver is declared, the hub may
// fill in a subject that is empty, or replace one that an agent with another driver wrote.
func subjectSettled(r addonv1beta1.RegistrationConfig, declared bool) bool {
	if r.Type != addonv1beta1.KubeClient {
		return true
	}
	var subject addonv1beta1.BaseSubject
	if r.KubeClient != nil {
		subject = r.KubeClient.Subject.BaseSubject
	}
	if strings.HasPrefix(subject.User, serviceAccountPrefix) {
		return false
	}
	return declared || (subject.User != "" && len(subject.Groups) > 0)
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

// planHealth turns the lease into the condition Available (contract, registration 3.1). While the hub has lost sight of
// the cluster, it says how the add-ons are.
func (p *plan) planHealth(f facts) {
	if f.addon.Status.HealthCheck.Mode == addonv1beta1.HealthCheckModeCustomized {
		return
	}
	watched := p.place.lease(f.name)
	p.watch = []target{watched}
	if !f.lease.known {
		return
	}
	verdict := lease.Judge(leaseOf(f.lease), f.now, f.grace)
	if verdict.State == lease.Fresh {
		p.wake = verdict.ExpiresAt
	}
	if !f.clusterUnknown {
		p.available = health(f.name, p.place, verdict)
	}
}

// health returns the condition Available for a judgement on the lease. Reasons and the starts of the messages are those
// of the contract; what follows says why.
func health(addon string, p place, v lease.Verdict) *metav1.Condition {
	c := &metav1.Condition{Type: addonv1beta1.ManagedClusterAddOnConditionAvailable}
	switch v.State {
	case lease.Fresh:
		c.Status, c.Reason = metav1.ConditionTrue, "ManagedClusterAddOnLeaseUpdated"
		c.Message = addon + " add-on is available."
	case lease.Stale:
		c.Status, c.Reason = metav1.ConditionFalse, "ManagedClusterAddOnLeaseUpdateStopped"
		c.Message = fmt.Sprintf("%s add-on is not available. Its %s.", addon, v.Message)
	case lease.Missing:
		c.Status, c.Reason = metav1.ConditionUnknown, "ManagedClusterAddOnLeaseNotFound"
		c.Message = fmt.Sprintf("The status of %s add-on is unknown. ", addon)
		if p.hosting != "" {
			c.Message += fmt.Sprintf("No lease found on hosting cluster %q; "+
				"verify it matches the cluster where this managed cluster's klusterlet actually runs.", p.hosting)
			break
		}
		c.Message += fmt.Sprintf("There is no lease %s/%s: no agent of the add-on has renewed it yet.", p.namespace, addon)
	}
	return c
}
