package approve

import (
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
			ReasonNamesNotExpected, "IP address"},
		"an email address": {func(c *x509.CertificateRequest) { c.EmailAddresses = []string{"a@example.com"} },
			ReasonNamesNotExpected, "email address"},
		"a URI": {func(c *x509.CertificateRequest) { c.URIs = []*url.URL{{Scheme: "spiffe", Host: "x"}} },
			ReasonNamesNotExpected, "URI"},
		"a registered ID": {func(c *x509.CertificateRequest) {
			c.ExtraExtensions = []pkix.Extension{rawNames(dns, asn1.RawValue{
				Class: asn1.ClassContextSpecific, Tag: 8, Bytes: []byte{42, 3}})}
		}, ReasonNamesNotExpected, "registered ID"},
		"an other name": {func(c *x509.CertificateRequest) {
			c.ExtraExtensions = []pkix.Extension{rawNames(dns, asn1.RawValue{
				Class: asn1.ClassContextSpecific, Tag: 0, IsCompound: true, Bytes: []byte{6, 1, 42}})}
		}, ReasonNamesNotExpected, "other name"},
		"the same DNS name twice": {func(c *x509.CertificateRequest) {
			c.ExtraExtensions = []pkix.Extension{rawNames(dns, dns)}
		}, ReasonNamesNotExpected, "DNS names"},
		"the extension of a CA": {func(c *x509.CertificateRequest) {
			c.ExtraExtensions = []pkix.Extension{{Id: asn1.ObjectIdentifier{2, 5, 29, 19}, Value: []byte{0x30, 3, 1, 1, 255}}}
		}, ReasonNamesNotExpected, "2.5.29.19"},
		"a country": {func(c *x509.CertificateRequest) { c.Subject.Country = []string{"DE"} },
			ReasonSubjectNotExpected, "2.5.4.6"},
		"a second common name": {func(c *x509.CertificateRequest) {
			subject := c.Subject.ToRDNSequence()
			subject = append(subject, pkix.RelativeDistinguishedNameSET{{
				Type: asn1.ObjectIdentifier{2, 5, 4, 3}, Value: "admin"}})
			der, err := asn1.Marshal(subject)
			require.NoError(t, err)
			c.RawSubject = der
		}, ReasonSubjectNotExpected, `"admin"`},
		"something behind the names": {func(c *x509.CertificateRequest) {
			extension := rawNames(dns)
			extension.Value = append(extension.Value, 5, 0)
			c.ExtraExtensions = []pkix.Extension{extension}
		}, ReasonRequestMalformed, "alternative names"},
		"a user id": {func(c *x509.CertificateRequest) {
			c.Subject.ExtraNames = []pkix.AttributeTypeAndValue{{
				Type: asn1.ObjectIdentifier{0, 9, 2342, 19200300, 100, 1, 1}, Value: "root"}}
		}, ReasonSubjectNotExpected, "0.9.2342"},
	} {
		t.Run(name, func(t *testing.T) {
			request := newRequest(t, clusterRequest, clusterRequest.User)
			spoilt := template(clusterRequest)
			tc.spoil(spoilt)
			withContent(t, request, spoilt)
			v := JudgeCluster(request, trust(clusterRequest.User), false)
			assertNotApproved(t, v, tc.reason)
			assert.Contains(t, v.Message, tc.says)

			request = newRequest(t, addonRequest, clusterRequest.User)
			spoilt = template(addonRequest)
			tc.spoil(spoilt)
			withContent(t, request, spoilt)
			v = JudgeAddon(request, []addonv1beta1.RegistrationConfig{kubeClient("c1", "hello")})
			assertNotApproved(t, v, tc.reason)
			assert.Contains(t, v.Message, tc.says)
		})
	}
}

func TestKindsOfAlternativeNamesAreNamed(t *testing.T) {
	for name, tc := range map[string]struct {
		tag  int
		want string
	}{
		"the first kind of RFC 5280":    {0, "other name"},
		"the last kind of RFC 5280":     {8, "registered ID"},
		"a kind that does not exist":    {9, "name of kind 9"},
		"a kind that cannot be encoded": {-1, "name of kind -1"},
	} {
		t.Run(name, func(t *testing.T) { assert.Equal(t, tc.want, generalName(tc.tag)) })
	}
}
