package csr

import (
	"slices"
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

// Undecided reports whether a request object still waits for a user to approve or deny it. What the hub manager
// writes on it in other conditions decides nothing, whatever their status.
func Undecided(request *certificatesv1.CertificateSigningRequest) bool {
	return len(request.Status.Certificate) == 0 && !HasCondition(request,
		certificatesv1.CertificateApproved, certificatesv1.CertificateDenied, certificatesv1.CertificateFailed)
}

// ApprovedAt returns the time of the approval of a request object; its creation time if that is unknown.
func ApprovedAt(request *certificatesv1.CertificateSigningRequest) time.Time {
	for _, c := range request.Status.Conditions {
		if c.Type == certificatesv1.CertificateApproved && !c.LastUpdateTime.IsZero() {
			return c.LastUpdateTime.Time
		}
	}
	return request.CreationTimestamp.Time
}

// HasCondition reports whether one of these conditions of a request object is set.
func HasCondition(
	request *certificatesv1.CertificateSigningRequest, kinds ...certificatesv1.RequestConditionType,
) bool {
	return slices.ContainsFunc(request.Status.Conditions, func(c certificatesv1.CertificateSigningRequestCondition) bool {
		return c.Status != corev1.ConditionFalse && slices.Contains(kinds, c.Type)
	})
}
