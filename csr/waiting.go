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

// Conditions of a request object with which the hub explains to the agent why it leaves the request alone, always with
// status False. They have no effect: Kubernetes does not know them, and a person may still approve or deny.
const (
	// ConditionApprovedByHub explains why the hub does not approve a request.
	ConditionApprovedByHub certificatesv1.RequestConditionType = "registration.spokelet.io/ApprovedByHub"
	// ConditionSignedByHub explains why the hub does not sign an approved request.
	ConditionSignedByHub certificatesv1.RequestConditionType = "registration.spokelet.io/SignedByHub"
)

// Reasons of a rotation that waits for the hub.
const (
	// ReasonRequestRefused is the reason while the hub leaves the request alone and explains why.
	ReasonRequestRefused = "CertificateRequestRefused"
	// ReasonRequestPending is the reason while nobody has approved or denied the request.
	ReasonRequestPending = "CertificateRequestPending"
	// ReasonRequestNotSigned is the reason while the request is approved and not signed.
	ReasonRequestNotSigned = "CertificateRequestNotSigned"
)

// waitTimeout is the time after which the agent reports a request that waits: most are answered within a second.
const waitTimeout = 10 * time.Second

// Comment is the explanation of the hub for a request that it leaves alone.
type Comment struct {
	// Kind is the type of the condition.
	Kind certificatesv1.RequestConditionType
	// Reason identifies the rule; Message explains the rule and the remedy.
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

// wait decides about a request object that was neither refused nor issued. It reports what the request waits for: at
// once if the hub explains it, else after waitTimeout.
func (s Standing) wait() Plan {
	plan := Plan{Step: StepWait, Condition: s.earlierFailure()}
	// The answer to the request is an event. A missed event matters while the old pair is about to expire.
	plan.Wake, plan.Urgent = s.again(maxUrgentWait)
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
	if reportAt := s.waitingSince(approved).Add(waitTimeout); s.Now.Before(reportAt) {
		if plan.Wake.IsZero() || reportAt.Before(plan.Wake) {
			plan.Wake = reportAt
		}
		return plan
	}
	plan.Condition = s.waiting(ReasonRequestPending, notApproved(s.Request))
	if approved {
		plan.Condition = s.waiting(ReasonRequestNotSigned, notSigned(s.Request))
	}
	return plan
}

// waitingSince returns the time since which the request waits for approval or, if approved, for its certificate. Hub
// and agent have different clocks: an approval before the creation of the request or after now does not count.
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

// notApproved explains what an undecided request waits for.
func notApproved(request *certificatesv1.CertificateSigningRequest) string {
	return fmt.Sprintf("csr %q waits for approval since %s: nobody has approved or denied it. Events on it may say why "+
		"(kubectl describe csr %s on the hub). If you know who asks, run kubectl certificate approve %s on the hub.",
		request.Name, request.CreationTimestamp.UTC().Format(time.RFC3339), request.Name, request.Name)
}

// notSigned names the signer of an approved request and the most common problems.
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

// waiting returns the condition of a request that waits, with the failure of the previous one.
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
