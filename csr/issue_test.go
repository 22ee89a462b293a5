package csr

import (
	"crypto/x509"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// issuing is a cluster in the middle of getting a certificate.
type issuing struct {
	t        *testing.T
	ca       *signer
	standing Standing
}

// newIssuing has a pending key whose request is on the hub and waits for a person.
func newIssuing(t *testing.T) *issuing {
	t.Helper()
	want := ForCluster("c1", "a1")
	key, err := NewKey()
	require.NoError(t, err)
	request, err := want.Build(key)
	require.NoError(t, err)
	request.Name, err = requestName(want, key)
	require.NoError(t, err)
	request.UID = "uid-1"
	return &issuing{t: t, ca: newSigner(t), standing: Standing{
		Now: noon, Want: want, Hub: "hub", Open: 1,
		Pending: &Pending{Key: key, Fingerprint: fingerprint(want, "hub"), RequestUID: "uid-1", MadeAt: noon},
		Request: request,
	}}
}

func (i *issuing) conditioned(kind certificatesv1.RequestConditionType, at time.Time) {
	i.standing.Request.Status.Conditions = append(i.standing.Request.Status.Conditions,
		certificatesv1.CertificateSigningRequestCondition{
			Type: kind, Status: corev1.ConditionTrue, Reason: "Because", Message: "of this", LastUpdateTime: metav1.NewTime(at),
		})
}

func (i *issuing) issued(change func(*x509.Certificate)) {
	i.conditioned(certificatesv1.CertificateApproved, noon)
	i.standing.Request.Status.Certificate = i.ca.sign(
		i.t, i.standing.Request.Spec.Request, noon.Add(-time.Minute), noon.Add(time.Hour), change)
}

// Shows: registration/rotation-decided
func TestDecide(t *testing.T) {
	const (
		rotated  = "client certificate rotated starting from 2026-11-20 11:59:00 +0000 UTC to 2026-11-20 13:00:00 +0000 UTC"
		prefix   = "Failed to rotated client certificate "
		vanished = `It might have already been deleted`
	)
	good := func(i *issuing) Pair {
		return i.ca.pair(i.t, i.standing.Want, noon.Add(-time.Minute), noon.Add(time.Hour))
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
			given: func(i *issuing) { i.standing.Pending, i.standing.Request = nil, nil },
			step:  StepStart,
		},
		"with a good pair, nothing is done": {
			given: func(i *issuing) {
				i.standing.Stored, i.standing.Pending, i.standing.Request = good(i), nil, nil
			},
			step: StepNone, status: metav1.ConditionTrue, message: rotated,
		},
		"with a good pair, a pending key is of no use": {
			given: func(i *issuing) { i.standing.Stored = good(i) },
			step:  StepForget, status: metav1.ConditionTrue, message: rotated,
		},
		"a good pair that is due is replaced": {
			given: func(i *issuing) {
				i.standing.Stored, i.standing.Pending, i.standing.Request = good(i), nil, nil
				i.standing.Now = noon.Add(55 * time.Minute)
			},
			step: StepStart,
		},
		"a good pair from another hub is replaced": {
			given: func(i *issuing) {
				i.standing.Stored, i.standing.Pending, i.standing.Request = good(i), nil, nil
				i.standing.Renew = true
			},
			step: StepStart,
		},
		"a request that nobody decided on is waited for": {
			given: func(*issuing) {}, step: StepWait,
		},
		"a request that nobody decided on is waited for although the pair in use is due": {
			given: func(i *issuing) {
				i.standing.Stored, i.standing.Now = good(i), noon.Add(55*time.Minute)
				i.standing.Pending.MadeAt = i.standing.Now
			},
			step: StepWait,
		},
		"while waiting, the failure before is still told": {
			given: func(i *issuing) { i.standing.Pending.Failure = "earlier" },
			step:  StepWait, status: metav1.ConditionFalse, message: prefix + "earlier",
		},
		"an approved request without a certificate is waited for": {
			given: func(i *issuing) { i.conditioned(certificatesv1.CertificateApproved, noon) },
			step:  StepWait,
		},
		"a request that was created before a crash is noted": {
			given: func(i *issuing) { i.standing.Pending.RequestUID = "" },
			step:  StepRecord,
		},
		"a request that was not created before a crash is created": {
			given: func(i *issuing) { i.standing.Pending.RequestUID, i.standing.Request = "", nil },
			step:  StepCreate,
		},
		"a certificate is taken": {
			given: func(i *issuing) { i.issued(nil) },
			step:  StepTake, status: metav1.ConditionTrue, message: rotated,
		},
		"a certificate that was kept is taken when its request is long gone": {
			given: func(i *issuing) {
				i.issued(nil)
				i.standing.Pending.Certificate, i.standing.Request = i.standing.Request.Status.Certificate, nil
			},
			step: StepTake, status: metav1.ConditionTrue, message: rotated,
		},
		"a certificate that was kept too long is asked for again": {
			given: func(i *issuing) {
				i.issued(nil)
				i.standing.Pending.Certificate, i.standing.Request = i.standing.Request.Status.Certificate, nil
				i.standing.Now = noon.Add(2 * time.Hour)
			},
			step: StepStart, status: metav1.ConditionFalse,
			message: prefix + "the certificate expired at 2026-11-20T13:00:00Z",
		},
		"a key whose certificate is in use has served its turn": {
			given: func(i *issuing) {
				i.issued(nil)
				i.standing.Stored = Pair{Certificate: i.standing.Request.Status.Certificate, Key: i.standing.Pending.Key}
				i.standing.Now = noon.Add(55 * time.Minute)
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
				i.standing.Pending.Attempt = 3
			},
			step: StepWait, wake: noon.Add(8 * time.Minute), status: metav1.ConditionFalse, message: "was denied",
		},
		"the pause ends growing at an hour": {
			given: func(i *issuing) {
				i.conditioned(certificatesv1.CertificateDenied, noon)
				i.standing.Pending.Attempt = 1 << 30
			},
			step: StepWait, wake: noon.Add(time.Hour), status: metav1.ConditionFalse, message: "was denied",
		},
		"after the pause there is a new request": {
			given: func(i *issuing) {
				i.standing.Pending.MadeAt = noon.Add(-time.Minute)
				i.conditioned(certificatesv1.CertificateDenied, noon.Add(-time.Minute))
			},
			step: StepStart, status: metav1.ConditionFalse, message: "was denied: Because: of this", attempt: 1,
		},
		"a request that vanished is told and replaced": {
			given: func(i *issuing) { i.standing.Request = nil },
			step:  StepStart, status: metav1.ConditionFalse, message: vanished, attempt: 1,
		},
		"a request that somebody made again is replaced": {
			given: func(i *issuing) { i.standing.Request.UID = "uid-2" },
			step:  StepStart, status: metav1.ConditionFalse, message: vanished, attempt: 1,
		},
		"a request of our name with another key is none of ours": {
			given: func(i *issuing) {
				key, err := NewKey()
				require.NoError(i.t, err)
				i.standing.Pending.Key = key
			},
			step: StepStart, status: metav1.ConditionFalse, message: "was not made by this agent", attempt: 1,
		},
		"a pending key for another subject is given up": {
			given: func(i *issuing) { i.standing.Want.User = "other" },
			step:  StepStart,
		},
		"a pending key for another hub is given up": {
			given: func(i *issuing) { i.standing.Hub = "other" },
			step:  StepStart,
		},
		"a pending key that cannot be read is given up": {
			given: func(i *issuing) { i.standing.Pending.Key = []byte("garbage") },
			step:  StepStart,
		},
		"another order of groups or another lifetime keeps the pending key": {
			given: func(i *issuing) {
				groups := i.standing.Want.Groups
				seconds := int32(3600)
				i.standing.Want.Groups = []string{groups[1], groups[0]}
				i.standing.Want.ExpirationSeconds = &seconds
			},
			step: StepWait,
		},
		"ten requests on the hub stop the eleventh": {
			given: func(i *issuing) {
				i.standing.Pending, i.standing.Request, i.standing.Open = nil, nil, MaxRequests
			},
			step: StepWait, status: metav1.ConditionFalse,
			message: "Stop creating csr since there are too many csr created already on hub",
		},
		"ten requests on the hub do not stop a pending one": {
			given: func(i *issuing) { i.issued(nil); i.standing.Open = MaxRequests },
			step:  StepTake, status: metav1.ConditionTrue, message: rotated,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			i := newIssuing(t)
			tc.given(i)
			got := Decide(i.standing)
			assert.Equal(t, tc.step, got.Step)
			assert.Equal(t, tc.attempt, got.Pending.Attempt)
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

func TestPendingSurvivesItsSecret(t *testing.T) {
	full := Pending{
		Key: []byte("key"), Fingerprint: "f", RequestUID: "uid", Certificate: []byte("crt"), Attempt: 3, Failure: "why",
	}
	for name, want := range map[string]Pending{"full": full, "bare": {Key: []byte("key")}} {
		t.Run(name, func(t *testing.T) {
			secret := &corev1.Secret{Data: map[string][]byte{"other": []byte("stays"), "failure": []byte("old")}}
			want.write(secret)
			assert.Equal(t, &want, ReadPending(secret))
			assert.Equal(t, []byte("stays"), secret.Data["other"])
		})
	}
	assert.Nil(t, ReadPending(nil))
	assert.Nil(t, ReadPending(&corev1.Secret{Data: map[string][]byte{"cluster-name": []byte("c1")}}))
	garbled := ReadPending(&corev1.Secret{Data: map[string][]byte{"tls.key": []byte("k"), "attempt": []byte("-7")}})
	assert.Zero(t, garbled.Attempt)
}

func TestPendingNames(t *testing.T) {
	assert.Equal(t, "hub-kubeconfig-secret-pending", PendingName(ForCluster("c1", "a1"), ""))
	assert.Equal(t, "other-pending", PendingName(ForCluster("c1", "a1"), "other"))
	name := func(addon string, signerName string) string {
		request, err := ForAddon("c1", addon, custom(signerName, "u"))
		require.NoError(t, err)
		return PendingName(request, "")
	}
	assert.Regexp(t, `^hello-[0-9a-f]{10}-pending$`, name("hello", "example.com/s"))
	assert.NotEqual(t, name("a", "b-c.com/s"), name("a-b", "c.com/s"), "although their Secrets have the same name")
	assert.NotEqual(t, name("a", "example.com/s"), name("a", "example.com/t"))
	request, err := ForAddon("c1", "a", custom("example.com/s", "u"))
	require.NoError(t, err)
	assert.Equal(t, PendingName(request, ""), PendingName(request, "hub-kubeconfig-secret"))
	assert.NotEqual(t, PendingName(request, ""), PendingName(request, "other"), "two agents share a namespace")
}
