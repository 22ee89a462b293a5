package addon

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"

	"github.com/spokelet/spokelet/csr"
	"github.com/spokelet/spokelet/internal/token"
)

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
