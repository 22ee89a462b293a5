package issue

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	certificatesv1 "k8s.io/api/certificates/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/spokelet/spokelet/csr"
)

func TestARequestThatWaitsSaysForWhom(t *testing.T) {
	const (
		open     = " waits for approval since 2026-11-20T12:00:00Z: nobody has approved or denied it."
		unsigned = ", but signer kubernetes.io/kube-apiserver-client has not signed it. "
	)
	comment := func(i *issuing, kind certificatesv1.RequestConditionType) {
		csr.Comment{Kind: kind, Reason: "Rule", Message: "Not so. Do this."}.Put(i.standing.request, noon)
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
			given:  func(i *issuing) { comment(i, csr.ConditionApprovedByHub) },
			reason: ReasonRequestRefused, says: []string{": Rule: Not so. Do this."},
		},
		"what the hub said before a person approved counts no more": {
			given: func(i *issuing) {
				comment(i, csr.ConditionApprovedByHub)
				i.conditioned(certificatesv1.CertificateApproved, noon)
			},
			after: time.Second, wake: 10 * time.Second,
		},
		"why the hub does not sign is said at once": {
			given: func(i *issuing) {
				i.conditioned(certificatesv1.CertificateApproved, noon)
				comment(i, csr.ConditionSignedByHub)
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
				i.standing.request.Spec.SignerName = "example.com/signer"
			},
			after: 10 * time.Second, reason: ReasonRequestNotSigned,
			says: []string{"signer example.com/signer has not signed it. ", "signingCA", "kubectl describe csr c1-"},
		},
		"what became of the request before stays": {
			given: func(i *issuing) { i.standing.pending.failure = "it was denied" },
			after: 10 * time.Second, reason: ReasonRequestPending, says: []string{open, "The request before it: it was denied."},
		},
	} {
		t.Run(name, func(t *testing.T) {
			i := newIssuing(t)
			i.standing.request.CreationTimestamp = metav1.NewTime(noon)
			if tc.given != nil {
				tc.given(i)
			}
			i.standing.now = noon.Add(tc.after)
			got := decide(i.standing)
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
			later.now = later.now.Add(2 * time.Hour)
			assert.Equal(t, got.Condition, decide(later).Condition, "the message stays the same while the trouble does")
		})
	}
}
