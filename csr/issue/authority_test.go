package issue

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"

	"github.com/spokelet/spokelet/csr"
)

var noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// signer is a certificate authority of the tests.
type signer struct {
	key         *ecdsa.PrivateKey
	certificate *x509.Certificate
	serial      int64
}

func newSigner(tb testing.TB) *signer {
	tb.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(tb, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: noon.Add(-time.Hour), NotAfter: noon.Add(10000 * time.Hour),
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	require.NoError(tb, err)
	certificate, err := x509.ParseCertificate(der)
	require.NoError(tb, err)
	return &signer{key: key, certificate: certificate, serial: 1}
}

// sign issues what a request asks for; change may alter it.
func (s *signer) sign(
	tb testing.TB, requestPEM []byte, from, to time.Time, change func(*x509.Certificate),
) []byte {
	tb.Helper()
	request, err := csr.ParseRequest(requestPEM)
	require.NoError(tb, err)
	s.serial++
	template := &x509.Certificate{
		SerialNumber: big.NewInt(s.serial), Subject: request.Subject, DNSNames: request.DNSNames,
		NotBefore: from, NotAfter: to,
	}
	if change != nil {
		change(template)
	}
	der, err := x509.CreateCertificate(rand.Reader, template, s.certificate, request.PublicKey, s.key)
	require.NoError(tb, err)
	return pem.EncodeToMemory(&pem.Block{Type: pemCertificate, Bytes: der})
}

// pair returns a new key with a certificate for what is wanted.
func (s *signer) pair(tb testing.TB, want csr.Request, from, to time.Time) Pair {
	tb.Helper()
	key, err := csr.NewKey()
	require.NoError(tb, err)
	object, err := want.Build(key)
	require.NoError(tb, err)
	return Pair{Certificate: s.sign(tb, object.Spec.Request, from, to, nil), Key: key}
}

// ofAddon is the request of an add-on on cluster c1 to a custom signer.
func ofAddon(tb testing.TB, addon, signerName string, groups ...string) csr.Request {
	tb.Helper()
	want, err := csr.ForAddon("c1", addon, addonv1beta1.RegistrationConfig{
		Type: addonv1beta1.CustomSigner,
		CustomSigner: &addonv1beta1.CustomSignerConfig{SignerName: signerName, Subject: addonv1beta1.Subject{
			BaseSubject: addonv1beta1.BaseSubject{User: "u", Groups: groups}, OrganizationUnits: []string{"unit"},
		}},
	})
	require.NoError(tb, err)
	return want
}
