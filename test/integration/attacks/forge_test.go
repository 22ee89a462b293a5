package attacks_test

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/pem"
	"net"
	"net/url"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	certificatesv1 "k8s.io/api/certificates/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/spokelet/spokelet/csr"
)

// forgery is one request that must not pass.
type forgery struct {
	// as is who sends it.
	as who
	// asks holds what an honest agent would ask for; the functions below change it.
	asks csr.Request
	// fields changes what is asked for, content the encoded request before it is signed, and object the request object.
	fields  func(*csr.Request)
	content func(*x509.CertificateRequest)
	object  func(*certificatesv1.CertificateSigningRequest)
	// key makes the private key, ECDSA P-256 without it.
	key func() (crypto.Signer, error)
	// byHand says that a person approves the request after the hub manager refused it.
	byHand bool
	// rules are the rules that the hub manager names in its Events, in the order of their coming; none when the request
	// is none of its business.
	rules []string
	// refused is a part of the words with which the API server refuses the request; then the hub never sees it.
	refused string
}

// build makes the request object.
func (a forgery) build(t *testing.T) *certificatesv1.CertificateSigningRequest {
	t.Helper()
	asks := a.asks
	asks.Groups = slices.Clone(asks.Groups)
	if a.fields != nil {
		a.fields(&asks)
	}
	template := &x509.CertificateRequest{
		Subject: pkix.Name{
			CommonName: asks.User, Organization: asks.Groups, OrganizationalUnit: asks.OrganizationalUnits,
		},
		DNSNames: slices.Clone(asks.DNSNames),
	}
	if a.content != nil {
		a.content(template)
	}
	newKey := a.key
	if newKey == nil {
		newKey = ecdsaKey(elliptic.P256())
	}
	key, err := newKey()
	require.NoError(t, err)
	der, err := x509.CreateCertificateRequest(rand.Reader, template, key)
	require.NoError(t, err)
	request := &certificatesv1.CertificateSigningRequest{
		ObjectMeta: metav1.ObjectMeta{GenerateName: asks.GenerateName, Labels: map[string]string{}},
		Spec: certificatesv1.CertificateSigningRequestSpec{
			Request: encoded(der), SignerName: asks.Signer, Usages: csr.Usages(), ExpirationSeconds: asks.ExpirationSeconds,
		},
	}
	for name, value := range asks.Labels {
		request.Labels[name] = value
	}
	if a.object != nil {
		a.object(request)
	}
	return request
}

func encoded(der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der})
}

func ecdsaKey(curve elliptic.Curve) func() (crypto.Signer, error) {
	return func() (crypto.Signer, error) { return ecdsa.GenerateKey(curve, rand.Reader) }
}

func rsaKey(bits int) func() (crypto.Signer, error) {
	return func() (crypto.Signer, error) { return rsa.GenerateKey(rand.Reader, bits) }
}

// Object identifiers of X.520 and others.
func oidCommonName() asn1.ObjectIdentifier   { return asn1.ObjectIdentifier{2, 5, 4, 3} }
func oidSerial() asn1.ObjectIdentifier       { return asn1.ObjectIdentifier{2, 5, 4, 5} }
func oidOrganization() asn1.ObjectIdentifier { return asn1.ObjectIdentifier{2, 5, 4, 10} }
func oidUserID() asn1.ObjectIdentifier       { return asn1.ObjectIdentifier{0, 9, 2342, 19200300, 100, 1, 1} }

// attribute is one attribute of a subject; its value may be an asn1.RawValue.
func attribute(oid asn1.ObjectIdentifier, value any) pkix.AttributeTypeAndValue {
	return pkix.AttributeTypeAndValue{Type: oid, Value: value}
}

// subject replaces the subject by relative names as given, each with one or several attributes.
func subject(rdns ...pkix.RelativeDistinguishedNameSET) func(*x509.CertificateRequest) {
	return func(template *x509.CertificateRequest) {
		raw, err := asn1.Marshal(pkix.RDNSequence(rdns))
		if err != nil {
			template.RawSubject = []byte(err.Error())
			return
		}
		template.RawSubject = raw
	}
}

// further adds attributes to the subject, each in a relative name of its own.
func further(attributes ...pkix.AttributeTypeAndValue) func(*x509.CertificateRequest) {
	return func(template *x509.CertificateRequest) {
		rdns := template.Subject.ToRDNSequence()
		for _, a := range attributes {
			rdns = append(rdns, pkix.RelativeDistinguishedNameSET{a})
		}
		subject(rdns...)(template)
	}
}

// extension adds an extension to the request.
func extension(oid asn1.ObjectIdentifier, critical bool, value any) func(*x509.CertificateRequest) {
	return func(template *x509.CertificateRequest) {
		raw, err := asn1.Marshal(value)
		if err != nil {
			raw = []byte(err.Error())
		}
		template.ExtraExtensions = append(template.ExtraExtensions, pkix.Extension{Id: oid, Critical: critical, Value: raw})
	}
}

// alternative adds alternative names.
func alternative(dns []string, emails []string, ips []net.IP, uris []*url.URL) func(*x509.CertificateRequest) {
	return func(template *x509.CertificateRequest) {
		template.DNSNames = append(template.DNSNames, dns...)
		template.EmailAddresses, template.IPAddresses, template.URIs = emails, ips, uris
	}
}
