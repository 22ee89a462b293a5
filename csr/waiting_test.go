package csr

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestARequestThatWaitsSaysForWhom(t *testing.T) {
	const (
		open     = " waits for approval since 2026-11-20T12:00:00Z: nobody has approved or denied it."
		unsigned = ", but signer kubernetes.io/kube-apiserver-client has not signed it. "
	)
	comment := func(i *issuing, kind certificatesv1.RequestConditionType) {
		Comment{Kind: kind, Reason: "Rule", Message: "Not so. Do this."}.Put(i.standing.Request, noon)
	}
	for name, tc := range map[string]struct {
		given  func(i *issuing)
		after  time.Duration
		reason string // empty: nothing is said
		says   []string
		wake   time.Duration
	}{
		"at first nothing is said":   {after: 9 * time.Second, wake: 10 * time.Second},
		"after a while a person can": {after: 10 * time.Second, reason: ReasonRequestPending, says: []string{open}},
		"the request is named in the command": {after: time.Hour, reason: ReasonRequestPending,
			says: []string{"run kubectl certificate approve c1-", " on the hub."}},
		"the hub's refusal is said at once": {
			given:  func(i *issuing) { comment(i, ConditionApprovedByHub) },
			reason: ReasonRequestRefused, says: []string{": Rule: Not so. Do this."},
		},
		"what the hub said before a person approved counts no more": {
			given: func(i *issuing) {
				comment(i, ConditionApprovedByHub)
				i.conditioned(certificatesv1.CertificateApproved, noon)
			},
			after: time.Second, wake: 10 * time.Second,
		},
		"why the hub does not sign is said at once": {
			given: func(i *issuing) {
				i.conditioned(certificatesv1.CertificateApproved, noon)
				comment(i, ConditionSignedByHub)
			},
			reason: ReasonRequestRefused, says: []string{": Rule: Not so. Do this."},
		},
		"an approval starts the wait for the signature again": {
			given: func(i *issuing) { i.conditioned(certificatesv1.CertificateApproved, noon.Add(time.Minute)) },
			after: time.Minute + 9*time.Second, wake: time.Minute + 10*time.Second,
		},
		"an approved request that nobody signs": {
			given: func(i *issuing) { i.conditioned(certificatesv1.CertificateApproved, noon.Add(time.Minute)) },
			after: time.Minute + 10*time.Second, reason: ReasonRequestNotSigned,
			says: []string{" is approved since 2026-11-20T12:01:00Z" + unsigned, "kube-controller-manager", "--cluster-signing-cert-file"},
		},
		"an approval by a clock ahead of ours delays nothing": {
			given: func(i *issuing) { i.conditioned(certificatesv1.CertificateApproved, noon.Add(time.Hour)) },
			after: 10 * time.Second, reason: ReasonRequestNotSigned, says: []string{unsigned},
		},
		"a custom signer is somebody else": {
			given: func(i *issuing) {
				i.conditioned(certificatesv1.CertificateApproved, noon)
				i.standing.Request.Spec.SignerName = "example.com/signer"
			},
			after: 10 * time.Second, reason: ReasonRequestNotSigned,
			says: []string{"signer example.com/signer has not signed it. ", "signingCA", "kubectl describe csr c1-"},
		},
		"what became of the request before stays": {
			given: func(i *issuing) { i.standing.Pending.Failure = "it was denied" },
			after: 10 * time.Second, reason: ReasonRequestPending, says: []string{open, "The request before it: it was denied."},
		},
	} {
		t.Run(name, func(t *testing.T) {
			i := newIssuing(t)
			i.standing.Request.CreationTimestamp = metav1.NewTime(noon)
			if tc.given != nil {
				tc.given(i)
			}
			i.standing.Now = noon.Add(tc.after)
			got := Decide(i.standing)
			assert.Equal(t, StepWait, got.Step)
			if tc.wake > 0 {
				assert.Equal(t, noon.Add(tc.wake), got.Wake)
			} else {
				assert.Zero(t, got.Wake)
			}
			if tc.reason == "" {
				assert.Nil(t, got.Condition)
				return
			}
			require.NotNil(t, got.Condition)
			assert.Equal(t, metav1.ConditionFalse, got.Condition.Status)
			assert.Equal(t, tc.reason, got.Condition.Reason)
			for _, text := range tc.says {
				assert.Contains(t, got.Condition.Message, text)
			}
			later := i.standing
			later.Now = later.Now.Add(2 * time.Hour)
			assert.Equal(t, got.Condition, Decide(later).Condition, "the message stays the same while the trouble does")
		})
	}
}

func TestACommentOfTheHubDecidesNothing(t *testing.T) {
	i := newIssuing(t)
	request := i.standing.Request
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

func TestARefusalEndsWithItsRemedy(t *testing.T) {
	for _, text := range []string{"x", strings.Repeat("x", 3000)} {
		v := refuse("credential", []problem{{ReasonSubjectNotExpected, text}})
		assert.True(t, strings.HasSuffix(v.Message, "the next request is judged by itself."), v.Message)
		assert.LessOrEqual(t, len(v.Message), maxMessage)
	}
}
