package csr

import (
	"fmt"
	"slices"
	"strings"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Conditions with which the hub says on a request object why it leaves it alone, always with status False. They are for
// the agent that asked. They decide nothing: Kubernetes does not know them, and a person may still approve or deny.
const (
	// ConditionApprovedByHub says why the hub does not approve a request.
	ConditionApprovedByHub certificatesv1.RequestConditionType = "registration.spokelet.io/ApprovedByHub"
	// ConditionSignedByHub says why the hub does not sign an approved request.
	ConditionSignedByHub certificatesv1.RequestConditionType = "registration.spokelet.io/SignedByHub"
)

// Reasons of a rotation that waits for the hub.
const (
	// ReasonRequestRefused is the reason while the hub leaves the request alone and says why.
	ReasonRequestRefused = "CertificateRequestRefused"
	// ReasonRequestPending is the reason while nobody has approved or denied the request.
	ReasonRequestPending = "CertificateRequestPending"
	// ReasonRequestNotSigned is the reason while the request is approved and not signed.
	ReasonRequestNotSigned = "CertificateRequestNotSigned"
)

// patience is how long a request waits before the agent says so: most are answered within a second.
const patience = 10 * time.Second

// Comment is what the hub says about a request that it leaves alone.
type Comment struct {
	// Kind is the type of the condition.
	Kind certificatesv1.RequestConditionType
	// Reason is the rule in one word, Message the rule and the remedy.
	Reason, Message string
}

// CommentOn returns the comment of one kind on a request, and whether there is one.
func CommentOn(
	request *certificatesv1.CertificateSigningRequest, kind certificatesv1.RequestConditionType,
) (Comment, bool) {
	for _, c := range request.Status.Conditions {
		if c.Type == kind && c.Status == corev1.ConditionFalse {
			return Comment{Kind: kind, Reason: c.Reason, Message: c.Message}, true
		}
	}
	return Comment{}, false
}

// Put writes a comment on a request, in the place of an earlier one of its kind.
func (c Comment) Put(request *certificatesv1.CertificateSigningRequest, now time.Time) {
	RemoveComment(request, c.Kind)
	at := metav1.NewTime(now)
	request.Status.Conditions = append(request.Status.Conditions, certificatesv1.CertificateSigningRequestCondition{
		Type: c.Kind, Status: corev1.ConditionFalse, Reason: c.Reason, Message: c.Message,
		LastUpdateTime: at, LastTransitionTime: at,
	})
}

// RemoveComment takes back the comment of one kind.
func RemoveComment(request *certificatesv1.CertificateSigningRequest, kind certificatesv1.RequestConditionType) {
	request.Status.Conditions = slices.DeleteFunc(request.Status.Conditions,
		func(c certificatesv1.CertificateSigningRequestCondition) bool { return c.Type == kind })
}

// wait decides about a request object that was neither refused nor issued: it says what it waits for, at once where the
// hub says why, else after a while.
func (s Standing) wait() Plan {
	plan := Plan{Step: StepWait, Condition: s.earlierFailure()}
	// An event says when the request is answered; but with the old pair running out, one that is missed would be dear.
	plan.Wake, plan.Urgent = s.again(latestLook)
	approved := has(s.Request, certificatesv1.CertificateApproved)
	kind := ConditionApprovedByHub
	if approved {
		kind = ConditionSignedByHub
	}
	if comment, ok := CommentOn(s.Request, kind); ok {
		plan.Condition = s.waiting(ReasonRequestRefused, fmt.Sprintf("csr %q: %s: %s",
			s.Request.Name, comment.Reason, comment.Message))
		return plan
	}
	if told := s.waitingSince(approved).Add(patience); s.Now.Before(told) {
		if plan.Wake.IsZero() || told.Before(plan.Wake) {
			plan.Wake = told
		}
		return plan
	}
	plan.Condition = s.waiting(ReasonRequestPending, notApproved(s.Request))
	if approved {
		plan.Condition = s.waiting(ReasonRequestNotSigned, notSigned(s.Request))
	}
	return plan
}

// waitingSince is the instant at which the request began to wait for what it waits for now. Hub and agent have a clock
// each: an approval that lies outside of what the agent lived through is not counted from.
func (s Standing) waitingSince(approved bool) time.Time {
	since := s.Pending.MadeAt
	if since.IsZero() || since.After(s.Now) {
		since = s.Request.CreationTimestamp.Time
	}
	if at := approvedAt(s.Request); approved && at.After(since) && !at.After(s.Now) {
		return at
	}
	return since
}

// notApproved says what a request waits for that nobody has approved or denied.
func notApproved(request *certificatesv1.CertificateSigningRequest) string {
	return fmt.Sprintf("csr %q waits for approval since %s: nobody has approved or denied it. Events on it may say why "+
		"(kubectl describe csr %s on the hub). If you know who asks, run kubectl certificate approve %s on the hub.",
		request.Name, request.CreationTimestamp.UTC().Format(time.RFC3339), request.Name, request.Name)
}

// notSigned says who has to sign an approved request, and what is wrong most often.
func notSigned(request *certificatesv1.CertificateSigningRequest) string {
	signer := request.Spec.SignerName
	text := fmt.Sprintf("csr %q is approved since %s, but signer %s has not signed it. ",
		request.Name, approvedAt(request).UTC().Format(time.RFC3339), signer)
	if signer == certificatesv1.KubeAPIServerClientSignerName {
		return text + "Requests of that signer are signed by the kube-controller-manager of the hub: see that it runs, " +
			"with --cluster-signing-cert-file and --cluster-signing-key-file, and what it logs."
	}
	return text + fmt.Sprintf("Who signs for it must run on the hub: the hub manager where spec.registration of the "+
		"AddOnTemplate names a signingCA, else the manager of the add-on. Events on the request may say why (kubectl "+
		"describe csr %s on the hub).", request.Name)
}

// waiting is the condition of a request that waits, with what became of the one before.
func (s Standing) waiting(reason, message string) *metav1.Condition {
	if s.Pending.Failure != "" {
		message = fmt.Sprintf("%s The request before it: %s.", message, strings.TrimRight(s.Pending.Failure, "."))
	}
	return &metav1.Condition{
		Type: ConditionRotated, Status: metav1.ConditionFalse, Reason: reason, Message: message,
	}
}

// has reports whether a condition of a request object is set.
func has(request *certificatesv1.CertificateSigningRequest, kind certificatesv1.RequestConditionType) bool {
	return slices.ContainsFunc(request.Status.Conditions, func(c certificatesv1.CertificateSigningRequestCondition) bool {
		return c.Type == kind && c.Status != corev1.ConditionFalse
	})
}
