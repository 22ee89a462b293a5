package approve

import (
	"slices"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"

	"github.com/spokelet/spokelet/csr"
)

// ConditionIdentityOwn is the condition of a request by which the hub manager vouches, with status True, that the
// subject of a request for the API server of the hub is an agent of the add-on that the labels name. The programs of
// authors approve no such request without it.
const ConditionIdentityOwn certificatesv1.RequestConditionType = "registration.spokelet.io/IdentityOwn"

const (
	// ReasonIdentityOwn is the reason of ConditionIdentityOwn with status True.
	ReasonIdentityOwn  = "IdentityOwn"
	messageIdentityOwn = "The subject of the request is an agent of the add-on on the cluster that asks."
)

// JudgeIdentity judges whether a request for the API server of the hub is that of an agent of the add-on and the
// cluster that its labels name, made by the agent of that cluster. Unlike JudgeAddon it needs no registrations: it
// judges for add-ons that the program of an author manages.
func JudgeIdentity(request *certificatesv1.CertificateSigningRequest) Verdict {
	cluster, addon, addonLabel := csr.Subject(request)
	if cluster == "" || !addonLabel || request.Spec.SignerName != certificatesv1.KubeAPIServerClientSignerName {
		return ignore("the request is not one of an add-on for the API server of the hub")
	}
	what := ofAddon(cluster, addon)
	ask, unreadable := decode(request)
	if len(unreadable) > 0 {
		return refuse(what, unreadable)
	}
	subject := addonv1beta1.BaseSubject{Groups: ask.organizations}
	if len(ask.commonNames) == 1 {
		subject.User = ask.commonNames[0]
	}
	expected, err := csr.ForAddon(cluster, addon, addonv1beta1.RegistrationConfig{
		Type:       addonv1beta1.KubeClient,
		KubeClient: &addonv1beta1.KubeClientConfig{Subject: addonv1beta1.KubeClientSubject{BaseSubject: subject}},
	})
	if err != nil {
		return refuse(what, []problem{{reasonIdentityNotOwn, err.Error()}})
	}
	problems := slices.Concat(checkCluster(cluster), checkAlways(request, ask), compare(ask, expected))
	if err := checkIdentity(cluster, addon, expected); err != nil {
		problems = append([]problem{{reasonIdentityNotOwn, err.Error()}}, problems...)
	}
	if len(problems) > 0 {
		return refuse(what, problems)
	}
	return judgeAddonRequester(request, Verdict{DecisionApprove, ReasonIdentityOwn, messageIdentityOwn, expected})
}

// Vouch writes a verdict of JudgeIdentity on a request, as ConditionIdentityOwn.
func (v Verdict) Vouch(request *certificatesv1.CertificateSigningRequest, now time.Time) {
	csr.RemoveComment(request, ConditionIdentityOwn)
	status, at := corev1.ConditionFalse, metav1.NewTime(now)
	if v.Decision == DecisionApprove {
		status = corev1.ConditionTrue
	}
	request.Status.Conditions = append(request.Status.Conditions, certificatesv1.CertificateSigningRequestCondition{
		Type: ConditionIdentityOwn, Status: status, Reason: v.Reason, Message: v.Message,
		LastUpdateTime: at, LastTransitionTime: at,
	})
}

// Vouched returns what the hub manager wrote on a request about its identity: own is true when it vouches for it, and
// found is false when it wrote nothing yet.
func Vouched(request *certificatesv1.CertificateSigningRequest) (own bool, message string, found bool) {
	for _, c := range request.Status.Conditions {
		if c.Type == ConditionIdentityOwn {
			return c.Status == corev1.ConditionTrue, c.Message, true
		}
	}
	return false, "", false
}
