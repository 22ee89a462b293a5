package csr

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestACommentOfTheHubDecidesNothing(t *testing.T) {
	request := &certificatesv1.CertificateSigningRequest{}
	Comment{Kind: ConditionApprovedByHub, Reason: "A", Message: "a"}.Put(request, noon)
	Comment{Kind: ConditionApprovedByHub, Reason: "B", Message: "b"}.Put(request, noon)
	require.Len(t, request.Status.Conditions, 1)
	assert.True(t, Undecided(request), "the request still counts as one that waits")
	comment, ok := CommentOn(request, ConditionApprovedByHub)
	assert.True(t, ok)
	assert.Equal(t, Comment{ConditionApprovedByHub, "B", "b"}, comment)
	request.Status.Conditions[0].Status = corev1.ConditionTrue
	_, ok = CommentOn(request, ConditionApprovedByHub)
	assert.False(t, ok, "only a no is a comment")
	RemoveComment(request, ConditionApprovedByHub)
	assert.Empty(t, request.Status.Conditions)
}

func TestARequestWaitsUntilItIsApprovedDeniedOrFailed(t *testing.T) {
	with := func(kind certificatesv1.RequestConditionType, status corev1.ConditionStatus) certificatesv1.CertificateSigningRequestStatus {
		return certificatesv1.CertificateSigningRequestStatus{
			Conditions: []certificatesv1.CertificateSigningRequestCondition{{Type: kind, Status: status}},
		}
	}
	for sentence, tc := range map[string]struct {
		status certificatesv1.CertificateSigningRequestStatus
		want   bool
	}{
		"it waits at first":                 {want: true},
		"approved it waits no more":         {with(certificatesv1.CertificateApproved, corev1.ConditionTrue), false},
		"denied it waits no more":           {with(certificatesv1.CertificateDenied, corev1.ConditionTrue), false},
		"failed it waits no more":           {with(certificatesv1.CertificateFailed, corev1.ConditionTrue), false},
		"a condition without a status too":  {with(certificatesv1.CertificateApproved, ""), false},
		"a condition that is false is none": {with(certificatesv1.CertificateApproved, corev1.ConditionFalse), true},
		"other conditions decide nothing":   {with("example.com/Other", corev1.ConditionTrue), true},
		"issued it waits no more": {
			certificatesv1.CertificateSigningRequestStatus{Certificate: []byte("c")}, false,
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			assert.Equal(t, tc.want, Undecided(&certificatesv1.CertificateSigningRequest{Status: tc.status}))
		})
	}
}

func TestARequestIsApprovedWhenTheConditionSaysElseWhenItWasMade(t *testing.T) {
	request := &certificatesv1.CertificateSigningRequest{}
	request.CreationTimestamp = metav1.NewTime(noon)
	assert.Equal(t, noon, ApprovedAt(request))
	request.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{
		{Type: ConditionApprovedByHub, LastUpdateTime: metav1.NewTime(noon.Add(time.Second))},
		{Type: certificatesv1.CertificateApproved},
	}
	assert.Equal(t, noon, ApprovedAt(request))
	request.Status.Conditions[1].LastUpdateTime = metav1.NewTime(noon.Add(time.Minute))
	assert.Equal(t, noon.Add(time.Minute), ApprovedAt(request))
}
