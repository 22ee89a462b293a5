package issue

import (
	"crypto/x509"
	"encoding/pem"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/spokelet/spokelet/csr"
	"github.com/spokelet/spokelet/internal/names"
)

// issuing is a cluster in the middle of getting a certificate.
type issuing struct {
	t        *testing.T
	ca       *signer
	standing standing
}

// newIssuing has a pending key whose request is on the hub and waits for a person.
func newIssuing(t *testing.T) *issuing {
	t.Helper()
	want := csr.ForCluster("c1", "a1")
	key, err := csr.NewKey()
	require.NoError(t, err)
	request, err := want.Build(key)
	require.NoError(t, err)
	request.Name, err = requestName(want, key)
	require.NoError(t, err)
	request.UID = "uid-1"
	return &issuing{t: t, ca: newSigner(t), standing: standing{
		now: noon, want: want, hub: "hub", open: 1,
		pending: &pendingKey{key: key, fingerprint: fingerprint(want, "hub"), requestUID: "uid-1", madeAt: noon},
		request: request,
	}}
}

func (i *issuing) conditioned(kind certificatesv1.RequestConditionType, at time.Time) {
	i.standing.request.Status.Conditions = append(i.standing.request.Status.Conditions,
		certificatesv1.CertificateSigningRequestCondition{
			Type: kind, Status: corev1.ConditionTrue, Reason: "Because", Message: "of this", LastUpdateTime: metav1.NewTime(at),
		})
}

func (i *issuing) issued(change func(*x509.Certificate)) {
	i.conditioned(certificatesv1.CertificateApproved, noon)
	i.standing.request.Status.Certificate = i.ca.sign(
		i.t, i.standing.request.Spec.Request, noon.Add(-time.Minute), noon.Add(time.Hour), change)
}

// Shows: registration/rotation-decided
func TestDecide(t *testing.T) {
	const (
		rotated  = "client certificate rotated starting from 2026-11-20 11:59:00 +0000 UTC to 2026-11-20 13:00:00 +0000 UTC"
		prefix   = "Failed to rotated client certificate "
		vanished = `It might have already been deleted`
	)
	good := func(i *issuing) Pair {
		return i.ca.pair(i.t, i.standing.want, noon.Add(-time.Minute), noon.Add(time.Hour))
	}
	tests := map[string]struct {
		given   func(i *issuing)
		step    Step
		wake    time.Time
		status  metav1.ConditionStatus // empty: the condition is left alone
		message string
		attempt int
	}{
		"with nothing at all, a key is made": {
			given: func(i *issuing) { i.standing.pending, i.standing.request = nil, nil },
			step:  StepStart,
		},
		"with a good pair, nothing is done": {
			given: func(i *issuing) {
				i.standing.stored, i.standing.pending, i.standing.request = good(i), nil, nil
			},
			step: StepNone, status: metav1.ConditionTrue, message: rotated,
		},
		"with a good pair, a pending key is of no use": {
			given: func(i *issuing) { i.standing.stored = good(i) },
			step:  StepForget, status: metav1.ConditionTrue, message: rotated,
		},
		"a good pair that is due is replaced": {
			given: func(i *issuing) {
				i.standing.stored, i.standing.pending, i.standing.request = good(i), nil, nil
				i.standing.now = noon.Add(55 * time.Minute)
			},
			step: StepStart,
		},
		"a good pair from another hub is replaced": {
			given: func(i *issuing) {
				i.standing.stored, i.standing.pending, i.standing.request = good(i), nil, nil
				i.standing.renew = true
			},
			step: StepStart,
		},
		"a request that nobody decided on is waited for": {
			given: func(*issuing) {}, step: StepWait,
		},
		"a request that nobody decided on is waited for although the pair in use is due": {
			given: func(i *issuing) {
				i.standing.stored, i.standing.now = good(i), noon.Add(55*time.Minute)
				i.standing.pending.madeAt = i.standing.now
			},
			step: StepWait,
		},
		"while waiting, the failure before is still told": {
			given: func(i *issuing) { i.standing.pending.failure = "earlier" },
			step:  StepWait, status: metav1.ConditionFalse, message: prefix + "earlier",
		},
		"an approved request without a certificate is waited for": {
			given: func(i *issuing) { i.conditioned(certificatesv1.CertificateApproved, noon) },
			step:  StepWait,
		},
		"a request that was created before a crash is noted": {
			given: func(i *issuing) { i.standing.pending.requestUID = "" },
			step:  StepRecord,
		},
		"a request that was not created before a crash is created": {
			given: func(i *issuing) { i.standing.pending.requestUID, i.standing.request = "", nil },
			step:  StepCreate,
		},
		"a certificate is taken": {
			given: func(i *issuing) { i.issued(nil) },
			step:  StepTake, status: metav1.ConditionTrue, message: rotated,
		},
		"a certificate that was kept is taken when its request is long gone": {
			given: func(i *issuing) {
				i.issued(nil)
				i.standing.pending.certificate, i.standing.request = i.standing.request.Status.Certificate, nil
			},
			step: StepTake, status: metav1.ConditionTrue, message: rotated,
		},
		"a certificate that was kept too long is asked for again": {
			given: func(i *issuing) {
				i.issued(nil)
				i.standing.pending.certificate, i.standing.request = i.standing.request.Status.Certificate, nil
				i.standing.now = noon.Add(2 * time.Hour)
			},
			step: StepStart, status: metav1.ConditionFalse,
			message: prefix + "the certificate expired at 2026-11-20T13:00:00Z",
		},
		"a key whose certificate is in use has served its turn": {
			given: func(i *issuing) {
				i.issued(nil)
				i.standing.stored = Pair{Certificate: i.standing.request.Status.Certificate, Key: i.standing.pending.key}
				i.standing.now = noon.Add(55 * time.Minute)
			},
			step: StepStart,
		},
		"a certificate for somebody else is refused at once": {
			given: func(i *issuing) {
				i.issued(func(c *x509.Certificate) { c.Subject.CommonName = "other" })
			},
			step: StepWait, wake: noon.Add(time.Minute), status: metav1.ConditionFalse,
			message: `signer kubernetes.io/kube-apiserver-client issued something else than was asked for: ` +
				`the certificate is for user "other", wanted is "system:open-cluster-management:c1:a1"; ` +
				`a new csr is made at 2026-11-20T12:01:00Z`,
		},
		"a denied request is told at once and answered after a pause": {
			given: func(i *issuing) { i.conditioned(certificatesv1.CertificateDenied, noon) },
			step:  StepWait, wake: noon.Add(time.Minute), status: metav1.ConditionFalse,
			message: `was denied: Because: of this; a new csr is made at 2026-11-20T12:01:00Z: ` +
				`if the denial was a mistake, run kubectl certificate approve on that one`,
		},
		"a failed request is told at once and answered after a pause": {
			given: func(i *issuing) { i.conditioned(certificatesv1.CertificateFailed, noon) },
			step:  StepWait, wake: noon.Add(time.Minute), status: metav1.ConditionFalse, message: `failed: Because: of this`,
		},
		"the pause doubles with each refusal": {
			given: func(i *issuing) {
				i.conditioned(certificatesv1.CertificateDenied, noon)
				i.standing.pending.attempt = 3
			},
			step: StepWait, wake: noon.Add(8 * time.Minute), status: metav1.ConditionFalse, message: "was denied",
		},
		"the pause ends growing at an hour": {
			given: func(i *issuing) {
				i.conditioned(certificatesv1.CertificateDenied, noon)
				i.standing.pending.attempt = 1 << 30
			},
			step: StepWait, wake: noon.Add(time.Hour), status: metav1.ConditionFalse, message: "was denied",
		},
		"after the pause there is a new request": {
			given: func(i *issuing) {
				i.standing.pending.madeAt = noon.Add(-time.Minute)
				i.conditioned(certificatesv1.CertificateDenied, noon.Add(-time.Minute))
			},
			step: StepStart, status: metav1.ConditionFalse, message: "was denied: Because: of this", attempt: 1,
		},
		"a request that vanished is told and replaced": {
			given: func(i *issuing) { i.standing.request = nil },
			step:  StepStart, status: metav1.ConditionFalse, message: vanished, attempt: 1,
		},
		"a request that somebody made again is replaced": {
			given: func(i *issuing) { i.standing.request.UID = "uid-2" },
			step:  StepStart, status: metav1.ConditionFalse, message: vanished, attempt: 1,
		},
		"a request of our name with another key is none of ours": {
			given: func(i *issuing) {
				key, err := csr.NewKey()
				require.NoError(i.t, err)
				i.standing.pending.key = key
			},
			step: StepStart, status: metav1.ConditionFalse, message: "was not made by this agent", attempt: 1,
		},
		"a pending key for another subject is given up": {
			given: func(i *issuing) { i.standing.want.User = "other" },
			step:  StepStart,
		},
		"a pending key for another hub is given up": {
			given: func(i *issuing) { i.standing.hub = "other" },
			step:  StepStart,
		},
		"a pending key that cannot be read is given up": {
			given: func(i *issuing) { i.standing.pending.key = []byte("garbage") },
			step:  StepStart,
		},
		"another order of groups or another lifetime keeps the pending key": {
			given: func(i *issuing) {
				groups := i.standing.want.Groups
				seconds := int32(3600)
				i.standing.want.Groups = []string{groups[1], groups[0]}
				i.standing.want.ExpirationSeconds = &seconds
			},
			step: StepWait,
		},
		"ten requests on the hub stop the eleventh": {
			given: func(i *issuing) {
				i.standing.pending, i.standing.request, i.standing.open = nil, nil, MaxRequests
			},
			step: StepWait, status: metav1.ConditionFalse,
			message: "Stop creating csr since there are too many csr created already on hub",
		},
		"ten requests on the hub do not stop a pending one": {
			given: func(i *issuing) { i.issued(nil); i.standing.open = MaxRequests },
			step:  StepTake, status: metav1.ConditionTrue, message: rotated,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			i := newIssuing(t)
			tc.given(i)
			got := decide(i.standing)
			assert.Equal(t, tc.step, got.Step)
			assert.Equal(t, tc.attempt, got.pending.attempt)
			if !tc.wake.IsZero() {
				assert.True(t, tc.wake.Equal(got.Wake), "wakes at %s", got.Wake)
			}
			if tc.status == "" {
				assert.Nil(t, got.Condition)
				return
			}
			require.NotNil(t, got.Condition)
			assert.Equal(t, "ClusterCertificateRotated", got.Condition.Type)
			assert.Equal(t, tc.status, got.Condition.Status)
			assert.Contains(t, got.Condition.Message, tc.message)
			wantReason := "ClientCertificateUpdateFailed"
			if tc.status == metav1.ConditionTrue {
				wantReason = "ClientCertificateUpdated"
			}
			assert.Equal(t, wantReason, got.Condition.Reason)
		})
	}
}

func TestPausesAfterRefusals(t *testing.T) {
	for name, tc := range map[string]struct {
		attempt int
		want    time.Duration
	}{
		"the first is a minute":     {0, time.Minute},
		"the second is two":         {1, 2 * time.Minute},
		"the sixth is 32":           {5, 32 * time.Minute},
		"the seventh is an hour":    {6, time.Hour},
		"it is never more than one": {1000, time.Hour},
	} {
		t.Run(name, func(t *testing.T) { assert.Equal(t, tc.want, pauseAfter(tc.attempt)) })
	}
}

// FuzzPending reads any data as the Secrets of a credential and of a pending key and takes the next step: a pair that
// fits is one that the standard library reads as what is wanted, a good pair is never given up, and what is taken fits.
func FuzzPending(f *testing.F) {
	want := csr.ForCluster("c1", "a")
	pair := newSigner(f).pair(f, want, noon.Add(-5*time.Minute), noon.Add(24*time.Hour))
	issued, key := pair.Certificate, pair.Key
	f.Add(issued, key, []byte(""), []byte(""), []byte("f"), []byte("3"), "2026-11-20T12:00:00Z", int64(0))
	f.Add(issued, key, issued, key, []byte("f"), []byte("-1"), "2026-11-21T11:59:59Z", int64(20*3600))
	f.Add([]byte(""), []byte(""), issued, key, []byte(""), []byte("x"), "yesterday", int64(48*3600))
	f.Fuzz(func(
		t *testing.T, cert, key, keptCert, keptKey, fingerprint, attempt []byte, issuedAt string, seconds int64,
	) {
		now := noon.Add(time.Duration(seconds%(1<<30)) * time.Second)
		pending := readPending(&corev1.Secret{Data: map[string][]byte{
			csr.KeyPrivateKey: keptKey, csr.KeyCertificate: keptCert, "fingerprint": fingerprint, "attempt": attempt,
			"issued-at": []byte(issuedAt),
		}})
		require.Equal(t, len(keptKey) == 0, pending == nil)
		if pending != nil {
			require.GreaterOrEqual(t, pending.attempt, 0)
			require.Equal(t, keptKey, pending.key)
		}
		stored := PairOf(&corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{names.AnnotationIssuedAt: issuedAt}},
			Data:       map[string][]byte{csr.KeyCertificate: cert, csr.KeyPrivateKey: key},
		})
		v := JudgePair(stored, want, now)
		require.Equal(t, v.Fits, v.Why == "")
		if v.Fits {
			block, _ := pem.Decode(cert)
			require.NotNil(t, block)
			require.False(t, now.After(v.NotAfter))
			require.False(t, v.RotateAt.Before(v.NotBefore))
		}
		plan := decide(standing{now: now, want: want, hub: "hub", stored: stored, pending: pending})
		if v.Fits && !v.Due(now) {
			require.Contains(t, []Step{StepNone, StepForget}, plan.Step)
		}
		if plan.Step == StepTake {
			require.True(t, JudgePair(plan.Pair, want, now).Fits)
		}
	})
}
