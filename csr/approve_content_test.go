package csr_test

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"net"
	"net/url"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"

	"github.com/spokelet/spokelet/csr"
)

func TestContentThatTheStandardLibraryWouldDropIsRefused(t *testing.T) {
	clusterRequest := csr.ForCluster("c1", "agent1")
	addonRequest := forAddon(t, "c1", "hello", kubeClient("c1", "hello"))
	rawNames := func(values ...asn1.RawValue) pkix.Extension {
		der, err := asn1.Marshal(values)
		require.NoError(t, err)
		return pkix.Extension{Id: asn1.ObjectIdentifier{2, 5, 29, 17}, Value: der}
	}
	dns := asn1.RawValue{Class: asn1.ClassContextSpecific, Tag: 2, Bytes: []byte(addonRequest.DNSNames[0])}
	for name, tc := range map[string]struct {
		spoil  func(*x509.CertificateRequest)
		reason string
		says   string
	}{
		"an IP address": {func(c *x509.CertificateRequest) { c.IPAddresses = []net.IP{net.IPv4(10, 0, 0, 1)} },
			csr.ReasonNamesNotExpected, "IP address"},
		"an email address": {func(c *x509.CertificateRequest) { c.EmailAddresses = []string{"a@example.com"} },
			csr.ReasonNamesNotExpected, "email address"},
		"a URI": {func(c *x509.CertificateRequest) { c.URIs = []*url.URL{{Scheme: "spiffe", Host: "x"}} },
			csr.ReasonNamesNotExpected, "URI"},
		"a registered ID": {func(c *x509.CertificateRequest) {
			c.ExtraExtensions = []pkix.Extension{rawNames(dns, asn1.RawValue{
				Class: asn1.ClassContextSpecific, Tag: 8, Bytes: []byte{42, 3}})}
		}, csr.ReasonNamesNotExpected, "registered ID"},
		"an other name": {func(c *x509.CertificateRequest) {
			c.ExtraExtensions = []pkix.Extension{rawNames(dns, asn1.RawValue{
				Class: asn1.ClassContextSpecific, Tag: 0, IsCompound: true, Bytes: []byte{6, 1, 42}})}
		}, csr.ReasonNamesNotExpected, "other name"},
		"the same DNS name twice": {func(c *x509.CertificateRequest) {
			c.ExtraExtensions = []pkix.Extension{rawNames(dns, dns)}
		}, csr.ReasonNamesNotExpected, "DNS names"},
		"the extension of a CA": {func(c *x509.CertificateRequest) {
			c.ExtraExtensions = []pkix.Extension{{Id: asn1.ObjectIdentifier{2, 5, 29, 19}, Value: []byte{0x30, 3, 1, 1, 255}}}
		}, csr.ReasonNamesNotExpected, "2.5.29.19"},
		"a country": {func(c *x509.CertificateRequest) { c.Subject.Country = []string{"DE"} },
			csr.ReasonSubjectNotExpected, "2.5.4.6"},
		"a second common name": {func(c *x509.CertificateRequest) {
			subject := c.Subject.ToRDNSequence()
			subject = append(subject, pkix.RelativeDistinguishedNameSET{{
				Type: asn1.ObjectIdentifier{2, 5, 4, 3}, Value: "admin"}})
			der, err := asn1.Marshal(subject)
			require.NoError(t, err)
			c.RawSubject = der
		}, csr.ReasonSubjectNotExpected, `"admin"`},
		"something behind the names": {func(c *x509.CertificateRequest) {
			extension := rawNames(dns)
			extension.Value = append(extension.Value, 5, 0)
			c.ExtraExtensions = []pkix.Extension{extension}
		}, csr.ReasonRequestMalformed, "alternative names"},
		"a user id": {func(c *x509.CertificateRequest) {
			c.Subject.ExtraNames = []pkix.AttributeTypeAndValue{{
				Type: asn1.ObjectIdentifier{0, 9, 2342, 19200300, 100, 1, 1}, Value: "root"}}
		}, csr.ReasonSubjectNotExpected, "0.9.2342"},
	} {
		t.Run(name, func(t *testing.T) {
			request := newRequest(t, clusterRequest, clusterRequest.User)
			spoilt := template(clusterRequest)
			tc.spoil(spoilt)
			withContent(t, request, spoilt)
			v := csr.JudgeCluster(request, trust(clusterRequest.User), false)
			assertNotApproved(t, v, tc.reason)
			assert.Contains(t, v.Message, tc.says)

			request = newRequest(t, addonRequest, clusterRequest.User)
			spoilt = template(addonRequest)
			tc.spoil(spoilt)
			withContent(t, request, spoilt)
			v = csr.JudgeAddon(request, []addonv1beta1.RegistrationConfig{kubeClient("c1", "hello")})
			assertNotApproved(t, v, tc.reason)
			assert.Contains(t, v.Message, tc.says)
		})
	}
}

func TestKeys(t *testing.T) {
	weakRSA, err := rsa.GenerateKey(rand.Reader, 1024)
	require.NoError(t, err)
	goodRSA, err := rsa.GenerateKey(rand.Reader, 2048)
	require.NoError(t, err)
	_, edwards, err := ed25519.GenerateKey(rand.Reader)
	require.NoError(t, err)
	p224, err := ecdsa.GenerateKey(elliptic.P224(), rand.Reader)
	require.NoError(t, err)
	p384, err := ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	require.NoError(t, err)
	for name, tc := range map[string]struct {
		key  any
		want csr.Decision
	}{
		"RSA 1024 is too short":    {weakRSA, csr.DecisionRefuse},
		"RSA 2048 is accepted":     {goodRSA, csr.DecisionApprove},
		"Ed25519 is accepted":      {edwards, csr.DecisionApprove},
		"ECDSA P-224 is too short": {p224, csr.DecisionRefuse},
		"ECDSA P-384 is accepted":  {p384, csr.DecisionApprove},
	} {
		t.Run(name, func(t *testing.T) {
			want := csr.ForCluster("c1", "agent1")
			request := newRequest(t, want, bootstrapUser)
			withSigned(t, request, template(want), tc.key)
			v := csr.JudgeCluster(request, trust(bootstrapUser), false)
			assert.Equal(t, tc.want, v.Decision, v.Message)
			if tc.want == csr.DecisionRefuse {
				assert.Equal(t, csr.ReasonKeyNotAccepted, v.Reason)
			}
		})
	}
}
