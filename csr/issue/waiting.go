package issue

import (
	"fmt"
	"strings"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/spokelet/spokelet/csr"
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

// wait decides about a request object that was neither refused nor issued. It reports what the request waits for: at
// once if the hub explains it, else after waitTimeout.
func (s standing) wait() Plan {
	plan := Plan{Step: StepWait, Condition: s.earlierFailure()}
	// The answer to the request is an event. A missed event matters while the old pair is about to expire.
	plan.Wake, plan.Urgent = s.again(maxUrgentWait)
	approved := csr.HasCondition(s.request, certificatesv1.CertificateApproved)
	kind := csr.ConditionApprovedByHub
	if approved {
		kind = csr.ConditionSignedByHub
	}
	if comment, ok := csr.CommentOn(s.request, kind); ok {
		plan.Condition = s.waiting(ReasonRequestRefused, fmt.Sprintf("csr %q: %s: %s",
			s.request.Name, comment.Reason, comment.Message))
		return plan
	}
	if reportAt := s.waitingSince(approved).Add(waitTimeout); s.now.Before(reportAt) {
		if plan.Wake.IsZero() || reportAt.Before(plan.Wake) {
			plan.Wake = reportAt
		}
		return plan
	}
	plan.Condition = s.waiting(ReasonRequestPending, notApproved(s.request))
	if approved {
		plan.Condition = s.waiting(ReasonRequestNotSigned, notSigned(s.request))
	}
	return plan
}

// waitingSince returns the time since which the request waits for approval or, if approved, for its certificate. Hub
// and agent have different clocks: an approval before the creation of the request or after now does not count.
func (s standing) waitingSince(approved bool) time.Time {
	since := s.pending.madeAt
	if since.IsZero() || since.After(s.now) {
		since = s.request.CreationTimestamp.Time
	}
	if at := csr.ApprovedAt(s.request); approved && at.After(since) && !at.After(s.now) {
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
		request.Name, csr.ApprovedAt(request).UTC().Format(time.RFC3339), signer)
	if signer == certificatesv1.KubeAPIServerClientSignerName {
		return text + "Requests of that signer are signed by the kube-controller-manager of the hub: see that it runs, " +
			"with --cluster-signing-cert-file and --cluster-signing-key-file, and what it logs."
	}
	return text + fmt.Sprintf("Who signs for it must run on the hub: the hub manager where spec.registration of the "+
		"AddOnTemplate names a signingCA, else the manager of the add-on. Events on the request may say why (kubectl "+
		"describe csr %s on the hub).", request.Name)
}

// waiting returns the condition of a request that waits, with the failure of the previous one.
func (s standing) waiting(reason, message string) *metav1.Condition {
	if s.pending.failure != "" {
		message = fmt.Sprintf("%s The request before it: %s.", message, strings.TrimRight(s.pending.failure, "."))
	}
	return &metav1.Condition{
		Type: csr.ConditionRotated, Status: metav1.ConditionFalse, Reason: reason, Message: message,
	}
}
