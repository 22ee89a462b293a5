package lies

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	certificatesv1 "k8s.io/api/certificates/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/spokelet/spokelet/csr"
	"github.com/spokelet/spokelet/internal/names"
)

// requestAt is a request of an agent for the credential of its cluster c1.
func requestAt(name string, created time.Time) *certificatesv1.CertificateSigningRequest {
	o := &certificatesv1.CertificateSigningRequest{ObjectMeta: metav1.ObjectMeta{
		Name: name, UID: types.UID(name), Labels: map[string]string{names.LabelClusterName: "c1"},
		CreationTimestamp: metav1.NewTime(created),
	}}
	o.Spec.Username = csr.ClusterUser("c1", "x")
	return o
}

// issuedAt is one that was approved and issued at an instant, as kube-controller-manager does: it counts from 5 minutes
// before, and lasts.
func issuedAt(t *testing.T, name string, at time.Time) *certificatesv1.CertificateSigningRequest {
	t.Helper()
	_, key, err := ed25519.GenerateKey(rand.Reader)
	require.NoError(t, err)
	of := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: at.Add(-5 * time.Minute), NotAfter: at.Add(lifetime)}
	signed, err := x509.CreateCertificate(rand.Reader, of, of, key.Public(), key)
	require.NoError(t, err)
	o := requestAt(name, at)
	o.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{
		{Type: certificatesv1.CertificateApproved, LastUpdateTime: metav1.NewTime(at)},
	}
	o.Status.Certificate = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: signed})
	return o
}

// The finding of an hour: a play told an agent a wrong time, the next play began, and the watch of the judge ended and
// began again when the certificate was 130 s old of its 180. The agent asked 14 s later, at its 80 %. A judge that
// counts from when it sees a certificate takes that for 14 s of 50.
func TestACertificateThatAWatchShowsAgainIsAsOldAsItIs(t *testing.T) {
	again := time.Now().Truncate(time.Second)
	issued := again.Add(-130 * time.Second)
	tests := map[string]struct {
		asks time.Duration // after the certificate was issued
		// misled is set when the play before told the agent a wrong time, next when there was another one.
		misled, next bool
		early        int
	}{
		"at 80 %, and the play before misled the agent": {asks: 144 * time.Second, misled: true, next: true},
		"at 80 %, and it did not":                       {asks: 144 * time.Second, next: true},
		"at 80 % of this play":                          {asks: 144 * time.Second},
		"at 58 %, and nothing misled the agent":         {asks: 104 * time.Second, next: true, early: 1},
		"at 58 % of this play":                          {asks: 104 * time.Second, early: 1},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			j := judged()
			last := issuedAt(t, "last", issued)
			j.request(watch.Modified, last)
			if tc.misled {
				j.mislead("c1")
			}
			if tc.next {
				j.forget() // when the stage is cleared
				j.forget() // when the next play begins
			}
			j.request(watch.Added, last)
			j.request(watch.Added, requestAt("next", issued.Add(tc.asks)))
			assert.Len(t, j.found(), tc.early, "%q", j.found())
		})
	}
}

// A wrong time misled an agent to ask, and when it knew the right one it gave the request up: the certificate that it
// has is good for a while. The hub approves the request when the next play has begun, and the agent asks when the one
// that it has is due. That is no early request; one soon after its certificate is.
func TestACertificateOfARequestThatWasGivenUpDoesNotCount(t *testing.T) {
	began := time.Now().Truncate(time.Second)
	j := judged()
	j.request(watch.Added, issuedAt(t, "has", began.Add(-110*time.Second)))
	j.mislead("c1")
	j.request(watch.Added, requestAt("given-up", began.Add(-40*time.Second)))
	j.forget() // when the stage is cleared
	j.forget() // when the next play begins
	late := issuedAt(t, "given-up", began)
	j.request(watch.Modified, late)
	j.request(watch.Added, requestAt("due", began.Add(30*time.Second)))
	assert.Empty(t, j.found(), "at 78 % of the certificate that it has")

	j.request(watch.Modified, issuedAt(t, "due", began.Add(31*time.Second)))
	j.request(watch.Added, requestAt("early", began.Add(50*time.Second)))
	assert.Len(t, j.found(), 1, "at 10 % of the certificate that it has")
}
