package addon

import (
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"

	"github.com/spokelet/spokelet/csr"
	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/internal/token"
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

// hostedAgent is the prefix of the mark of an agent on a Secret on another cluster than the agent.
const hostedAgent = "hosted:"

// ownership is the owner of a Secret with the name of ours.
type ownership struct {
	// foreign explains why the Secret is not ours; empty when it is.
	foreign string
	// unlessGone is the namespace of the agent that the Secret belongs to, on the same cluster as the Secret. The Secret
	// is ours if that namespace is gone. Empty when nothing could make the Secret ours.
	unlessGone string
}

// markOf returns the mark of this agent on the Secrets that it creates on a cluster.
func markOf(f facts, on side) string {
	if f.split && on == sideSpoke {
		return hostedAgent + f.agent
	}
	return f.agent
}

// isCredentialOf reports whether a Secret without our labels has the content of a registration, as another agent stored
// it: it names no other cluster, and the subject of its certificate or its token is that of the add-on. Older agents of
// OCM stored no name of the cluster, so that without one, the subject must name the cluster. A Secret without content
// has nothing to lose.
func isCredentialOf(secret *corev1.Secret, f facts, reg registration) bool {
	if len(secret.Data) == 0 {
		return true
	}
	cluster := string(secret.Data[csr.KeyClusterName])
	if cluster != "" && cluster != f.cluster {
		return false
	}
	claims, err := token.Parse(secret.Data[token.KeyToken])
	if err == nil && reg.kubeconfig && claims.Subject == token.User(f.cluster, f.name) {
		return true
	}
	block, _ := pem.Decode(secret.Data[csr.KeyCertificate])
	if block == nil {
		return false
	}
	certificate, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return false
	}
	user := certificate.Subject.CommonName
	id, own := csr.ParseAddonUser(user)
	return cluster != "" && user == reg.request.User || own && id.Cluster == f.cluster && id.Addon == f.name
}

// ownerOf returns the owner of a Secret. Secrets without our labels have none, and those are ours that this agent
// created under a former name of its cluster or for a former hub: the mark names the agent. hub is our hub.
func ownerOf(secret *corev1.Secret, f facts, on side, hub string) ownership {
	if secret.Labels[names.LabelCredential] == "" {
		return ownership{}
	}
	addon, cluster := secret.Labels[names.LabelAddonName], secret.Labels[names.LabelClusterName]
	mark, from := secret.Annotations[names.AnnotationAgent], secret.Annotations[names.AnnotationHub]
	sameHub := from == "" || from == hub
	own := addon == f.name
	switch {
	case own && cluster == f.cluster && (sameHub || mark == ""):
		return ownership{}
	case own && mark != "" && mark == markOf(f, on):
		return ownership{}
	case own && mark == "" && sameHub && (!f.split || on != sideAgent):
		// An earlier version wrote no mark. On a managed cluster, one hub knows one agent.
		return ownership{}
	}
	return foreignOf(secret, own, mark)
}

// foreignOf describes the other owner of a Secret and the remedy.
func foreignOf(secret *corev1.Secret, own bool, mark string) ownership {
	o := ownership{foreign: fmt.Sprintf("secret %s/%s belongs to add-on %s of cluster %s: "+
		"give one of the two add-ons another namespace", secret.Namespace, secret.Name,
		secret.Labels[names.LabelAddonName], secret.Labels[names.LabelClusterName])}
	if !own {
		return o
	}
	namespace, _, found := strings.Cut(mark, "/")
	switch {
	case mark == "":
		o.foreign += ", or delete the secret if no other agent uses it"
	case !found || strings.HasPrefix(mark, hostedAgent):
		o.foreign += fmt.Sprintf(", or delete the secret if agent %s is no more", mark)
	default:
		o.foreign += fmt.Sprintf(", or delete the secret if the agent in namespace %s is no more", namespace)
		o.unlessGone = namespace
	}
	return o
}

// isOfOthers reports whether another agent created a Secret with the names of our cluster and add-on: an agent of a
// cluster with the same name at another hub, or one that shares our namespace.
func isOfOthers(secret *corev1.Secret, f facts, on side, hub string) bool {
	mark := secret.Annotations[names.AnnotationAgent]
	if mark == "" || mark == markOf(f, on) {
		return false
	}
	if secret.Labels[names.LabelCredential] == names.CredentialPending {
		return true
	}
	from := secret.Annotations[names.AnnotationHub]
	return from != "" && from != hub
}

const (
	// DriverCSR is the driver of kubeClient registrations that requests certificates. The other driver is token.Driver.
	DriverCSR = "csr"
	// serviceAccountPrefix is the prefix of user names that only agents with the token driver write into a subject.
	serviceAccountPrefix = "system:serviceaccount:"
)

// planRegistrations divides the registrations into those to serve, those that are refused and those that wait for the
// hub. A problem with one does not affect the others.
func (p *plan) planRegistrations(f facts) {
	taken := map[string]registration{}
	for i, r := range f.addon.Status.Registrations {
		if r.Type == addonv1beta1.KubeClient && !isDeclared(f, r) {
			p.declare = f.driver
		}
		reg, known, err := planRegistration(f, r)
		name := csr.AddonSecretName(f.name, r)
		if err == nil {
			err = p.checkSecretName(f, name, reg)
		}
		if err != nil {
			p.refuse(i, reg, err.Error())
			continue
		}
		if !known {
			p.waits = true
			continue
		}
		reg.secret = types.NamespacedName{Namespace: p.place.namespace, Name: name}
		if first, ok := taken[name]; ok {
			if !equality.Semantic.DeepEqual(first.request, reg.request) {
				p.refuse(i, reg, fmt.Sprintf(
					"another registration before it has the same secret %s and another subject: only that is served", name))
			}
			continue
		}
		taken[name] = reg
		p.serve = append(p.serve, reg)
	}
}

// checkSecretName returns an error if a Secret of that name cannot exist where the add-on agent runs, or is not for
// add-ons.
func (p *plan) checkSecretName(f facts, name string, reg registration) error {
	if p.place.problem != "" {
		return errors.New(p.place.problem)
	}
	if slices.Contains(f.reserved, name) {
		return fmt.Errorf("secret %s is a credential of the klusterlet: give the add-on another name", name)
	}
	if problems := validation.IsDNS1123Subdomain(name); len(problems) > 0 {
		return fmt.Errorf("signer %s makes the Secret name %q, which Kubernetes does not allow: %s",
			reg.request.Signer, name, strings.Join(problems, "; "))
	}
	return nil
}

// planRegistration returns the credential to get for one registration, and whether its subject is known.
func planRegistration(f facts, r addonv1beta1.RegistrationConfig) (reg registration, known bool, err error) {
	reg.kubeconfig = r.Type == addonv1beta1.KubeClient
	if reg.kubeconfig && f.driver == token.Driver {
		reg.account = accountOf(f, r)
		_, err = csr.ForAddon(f.cluster, f.name, addonv1beta1.RegistrationConfig{Type: r.Type})
		return reg, true, err
	}
	reg.request, err = csr.ForAddon(f.cluster, f.name, r)
	reg.request.ExpirationSeconds = f.expirationSeconds
	return reg, subjectKnown(r, isDeclared(f, r)), err
}

// accountOf returns the ServiceAccount whose token a registration gets. Until the driver is declared, the condition of
// the hub about the ServiceAccount is outdated.
func accountOf(f facts, r addonv1beta1.RegistrationConfig) *account {
	a := &account{user: token.User(f.cluster, f.name)}
	conditions := f.addon.Status.Conditions
	name := f.cluster + "/" + token.ServiceAccountName(f.name)
	said := meta.FindStatusCondition(conditions, token.ConditionInfrastructure)
	uid, ready := token.ReadReady(conditions, f.cluster, f.name)
	switch {
	case !isDeclared(f, r) || said == nil:
		a.missing = fmt.Sprintf("the hub has not said yet, in condition %s, that ServiceAccount %s is there",
			token.ConditionInfrastructure, name)
	case said.Status != metav1.ConditionTrue:
		a.missing = fmt.Sprintf("the hub has no ServiceAccount %s ready: %s", name, said.Message)
	case !ready:
		a.missing = fmt.Sprintf("condition %s of the hub does not name the UID of ServiceAccount %s: it says %q",
			token.ConditionInfrastructure, name, said.Message)
	default:
		a.uid = uid
	}
	return a
}

func (p *plan) refuse(index int, reg registration, why string) {
	res := result{kind: reg.kind(), signer: reg.request.Signer}
	p.refused = append(p.refused, res.withFailure(fmt.Sprintf("registrations[%d]: %s", index, why)))
}

// isDeclared reports whether a kubeClient registration has our driver and, with tokens, our subject.
func isDeclared(f facts, r addonv1beta1.RegistrationConfig) bool {
	if r.KubeClient == nil || r.KubeClient.Driver != f.driver {
		return false
	}
	return f.driver != token.Driver ||
		(r.KubeClient.Subject.User == token.User(f.cluster, f.name) && len(r.KubeClient.Subject.Groups) == 0)
}

// declare writes our driver and, with tokens, our subject to every kubeClient registration.
func declare(registrations []addonv1beta1.RegistrationConfig, driver, user string) {
	for i := range registrations {
		if registrations[i].Type != addonv1beta1.KubeClient {
			continue
		}
		if registrations[i].KubeClient == nil {
			registrations[i].KubeClient = &addonv1beta1.KubeClientConfig{}
		}
		registrations[i].KubeClient.Driver = driver
		if driver == token.Driver {
			registrations[i].KubeClient.Subject.BaseSubject = addonv1beta1.BaseSubject{User: user}
		}
	}
}

// subjectKnown reports whether the hub has set the subject of the certificate. Once the driver is declared, the hub may
// set an empty subject, or replace one that an agent with another driver wrote.
func subjectKnown(r addonv1beta1.RegistrationConfig, declared bool) bool {
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
