package sign

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"math/big"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"

	"github.com/spokelet/spokelet/csr"
	"github.com/spokelet/spokelet/csr/approve"
	"github.com/spokelet/spokelet/internal/names"
)

const customSigner = "example.com/signer-test"

var signedAt = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// newCA makes the two PEM files of a CA with the key; change may spoil its certificate.
func newCA(tb testing.TB, key crypto.Signer, change func(*x509.Certificate)) []byte {
	tb.Helper()
	ca := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test CA"},
		NotBefore: signedAt.Add(-time.Hour), NotAfter: signedAt.Add(365 * 24 * time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	if change != nil {
		change(ca)
	}
	der, err := x509.CreateCertificate(rand.Reader, ca, ca, key.Public(), key)
	require.NoError(tb, err)
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

func ecdsaKey(t *testing.T) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	return key
}

func pkcs8(t *testing.T, key any) []byte {
	t.Helper()
	der, err := x509.MarshalPKCS8PrivateKey(key)
	require.NoError(t, err)
	return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})
}

// newSEC1 makes a CA as PEM, certificate and key in SEC 1.
func newSEC1(tb testing.TB) (certPEM, keyPEM []byte) {
	tb.Helper()
	keyPEM, err := csr.NewKey()
	require.NoError(tb, err)
	key, err := csr.ParseKey(keyPEM)
	require.NoError(tb, err)
	return newCA(tb, key, nil), keyPEM
}

func customRegistration(user string, groups, units []string) addonv1beta1.RegistrationConfig {
	return addonv1beta1.RegistrationConfig{
		Type: addonv1beta1.CustomSigner,
		CustomSigner: &addonv1beta1.CustomSignerConfig{SignerName: customSigner, Subject: addonv1beta1.Subject{
			BaseSubject: addonv1beta1.BaseSubject{User: user, Groups: groups}, OrganizationUnits: units,
		}},
	}
}

// asked is the request that the agent of cluster c1 makes for a registration of the add-on hello.
func asked(
	tb testing.TB, r addonv1beta1.RegistrationConfig,
) (*certificatesv1.CertificateSigningRequest, csr.Request) {
	tb.Helper()
	want, err := csr.ForAddon("c1", "hello", r)
	require.NoError(tb, err)
	key, err := csr.NewKey()
	require.NoError(tb, err)
	request, err := want.Build(key)
	require.NoError(tb, err)
	request.Spec.Username = csr.ClusterUser("c1", "a")
	return request, want
}

func parse(tb testing.TB, certPEM []byte) *x509.Certificate {
	tb.Helper()
	block, rest := pem.Decode(certPEM)
	require.NotNil(tb, block)
	require.Empty(tb, rest)
	certificate, err := x509.ParseCertificate(block.Bytes)
	require.NoError(tb, err)
	return certificate
}

// Shows: registration/signing-judged, registration/template-registrations
func TestEveryKindOfCASignsWhatItsCertificateVerifies(t *testing.T) {
	rsaKey, err := rsa.GenerateKey(rand.Reader, 2048)
	require.NoError(t, err)
	ecKey := ecdsaKey(t)
	ecDER, err := x509.MarshalECPrivateKey(ecKey)
	require.NoError(t, err)
	_, edKey, err := ed25519.GenerateKey(rand.Reader)
	require.NoError(t, err)
	for name, ca := range map[string]struct {
		key crypto.Signer
		pem []byte
	}{
		"RSA in PKCS#1": {rsaKey, pem.EncodeToMemory(&pem.Block{
			Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(rsaKey)})},
		"RSA in PKCS#8":     {rsaKey, pkcs8(t, rsaKey)},
		"ECDSA in SEC 1":    {ecKey, pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: ecDER})},
		"ECDSA in PKCS#8":   {ecKey, pkcs8(t, ecKey)},
		"Ed25519 in PKCS#8": {edKey, pkcs8(t, edKey)},
	} {
		t.Run(name, func(t *testing.T) {
			caPEM := newCA(t, ca.key, nil)
			authority, err := parseAuthority(caPEM, ca.pem)
			require.NoError(t, err)
			request, expected := asked(t, customRegistration("user-test", []string{"g1", "g2"}, []string{"u1"}))
			certPEM, err := authority.Sign(Issuance{CSR: request, Expected: expected, Now: signedAt, Random: rand.Reader})
			require.NoError(t, err)

			certificate := parse(t, certPEM)
			assert.Equal(t, "user-test", certificate.Subject.CommonName)
			assert.ElementsMatch(t, []string{"g1", "g2"}, certificate.Subject.Organization)
			assert.Equal(t, []string{"u1"}, certificate.Subject.OrganizationalUnit)
			assert.Equal(t, []string{"hello.addon.open-cluster-management.io"}, certificate.DNSNames)
			assert.Equal(t, []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}, certificate.ExtKeyUsage)
			assert.Equal(t, x509.KeyUsageDigitalSignature|x509.KeyUsageKeyEncipherment, certificate.KeyUsage)
			assert.True(t, certificate.BasicConstraintsValid)
			assert.False(t, certificate.IsCA)
			assert.Equal(t, signedAt.Add(-5*time.Minute), certificate.NotBefore)
			assert.Equal(t, signedAt.Add(24*time.Hour), certificate.NotAfter)
			assert.GreaterOrEqual(t, certificate.SerialNumber.BitLen(), 120)
			parsed, err := csr.ParseRequest(request.Spec.Request)
			require.NoError(t, err)
			assert.Equal(t, parsed.PublicKey, certificate.PublicKey)

			roots := x509.NewCertPool()
			require.True(t, roots.AppendCertsFromPEM(caPEM))
			verify := x509.VerifyOptions{
				Roots: roots, CurrentTime: signedAt, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}
			_, err = certificate.Verify(verify)
			require.NoError(t, err)
			verify.KeyUsages = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
			_, err = certificate.Verify(verify)
			require.Error(t, err, "a client certificate must not serve")
		})
	}
}

func TestTheLifetimeIsTheShortestOfAll(t *testing.T) {
	const month = 30 * 24 * time.Hour
	key := ecdsaKey(t)
	for name, tc := range map[string]struct {
		wished         *int32
		limit          time.Duration
		caFrom, caTo   time.Duration
		wantFrom, want time.Duration
	}{
		"a day without a wish":                {nil, 0, -time.Hour, month, -5 * time.Minute, 24 * time.Hour},
		"the wish when it is shorter":         {ptr.To[int32](3600), 0, -time.Hour, month, -5 * time.Minute, time.Hour},
		"a day when the wish is longer":       {ptr.To[int32](1e6), 0, -time.Hour, month, -5 * time.Minute, 24 * time.Hour},
		"the CA's when that ends earlier":     {nil, 0, -time.Hour, 2 * time.Hour, -5 * time.Minute, 2 * time.Hour},
		"the limit when that is shorter":      {nil, time.Hour, -time.Hour, month, -5 * time.Minute, time.Hour},
		"never more than a limit allows":      {ptr.To[int32](1e6), 48 * time.Hour, -time.Hour, month, -5 * time.Minute, 24 * time.Hour},
		"not before the CA where that is new": {nil, 0, -time.Minute, month, -time.Minute, 24 * time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			authority, err := parseAuthority(newCA(t, key, func(ca *x509.Certificate) {
				ca.NotBefore, ca.NotAfter = signedAt.Add(tc.caFrom), signedAt.Add(tc.caTo)
			}), pkcs8(t, key))
			require.NoError(t, err)
			request, expected := asked(t, customRegistration("u", nil, nil))
			request.Spec.ExpirationSeconds = tc.wished
			certPEM, err := authority.Sign(Issuance{
				CSR: request, Expected: expected, Limit: tc.limit, Now: signedAt, Random: rand.Reader,
			})
			require.NoError(t, err)
			certificate := parse(t, certPEM)
			assert.Equal(t, signedAt.Add(tc.wantFrom), certificate.NotBefore)
			assert.Equal(t, signedAt.Add(tc.want), certificate.NotAfter)
		})
	}
}

func TestOnlyWhatIsExpectedReachesTheCertificate(t *testing.T) {
	key := ecdsaKey(t)
	authority, err := parseAuthority(newCA(t, key, nil), pkcs8(t, key))
	require.NoError(t, err)
	request, expected := asked(t, customRegistration("user-test", []string{"g1"}, nil))
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{
		Subject:  pkix.Name{CommonName: "admin", Organization: []string{"system:masters"}, Country: []string{"DE"}},
		DNSNames: []string{"kubernetes.default"}, EmailAddresses: []string{"a@example.com"},
	}, ecdsaKey(t))
	require.NoError(t, err)
	request.Spec.Request = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der})
	certPEM, err := authority.Sign(Issuance{CSR: request, Expected: expected, Now: signedAt, Random: rand.Reader})
	require.NoError(t, err)
	certificate := parse(t, certPEM)
	assert.Equal(t, "CN=user-test,O=g1", certificate.Subject.String())
	assert.Equal(t, []string{"hello.addon.open-cluster-management.io"}, certificate.DNSNames)
	assert.Empty(t, certificate.EmailAddresses)
}

func TestSerialNumbersComeFromTheGivenReader(t *testing.T) {
	key := ecdsaKey(t)
	authority, err := parseAuthority(newCA(t, key, nil), pkcs8(t, key))
	require.NoError(t, err)
	request, expected := asked(t, customRegistration("u", nil, nil))
	random := bytes.NewReader(bytes.Repeat([]byte{0xab}, 16+1024))
	certPEM, err := authority.Sign(Issuance{CSR: request, Expected: expected, Now: signedAt, Random: random})
	require.NoError(t, err)
	assert.Equal(t, "ebababababababababababababababab", parse(t, certPEM).SerialNumber.Text(16))

	_, err = authority.Sign(Issuance{CSR: request, Expected: expected, Now: signedAt,
		Random: iotest.ErrReader(errors.New("out of luck"))})
	require.ErrorContains(t, err, "drawing a serial number: out of luck")
}

// Shows: registration/template-registrations
func TestABadCASaysWhatIsWrong(t *testing.T) {
	key := ecdsaKey(t)
	good, goodKey := newCA(t, key, nil), pkcs8(t, key)
	crlOnly := newCA(t, key, func(c *x509.Certificate) { c.KeyUsage = x509.KeyUsageCRLSign })
	garbage := func(kind string) []byte { return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: []byte{0, 0, 0}}) }
	for name, tc := range map[string]struct {
		cert, key []byte
		says      string
	}{
		"no certificate":         {nil, goodKey, "tls.crt: it is missing"},
		"no key":                 {good, nil, "tls.key: it is missing"},
		"certificate no PEM":     {[]byte("hello"), goodKey, "tls.crt: it holds no PEM block of type CERTIFICATE"},
		"key no PEM":             {good, []byte("hello"), "tls.key: it holds no PEM block"},
		"the two swapped":        {goodKey, good, "tls.crt: it holds no PEM block of type CERTIFICATE"},
		"a certificate as key":   {good, good, `tls.key: it is a PEM block of type "CERTIFICATE"`},
		"another key":            {good, pkcs8(t, ecdsaKey(t)), "tls.key is not the private key of"},
		"garbage as key":         {good, garbage("PRIVATE KEY"), "tls.key: the PEM block PRIVATE KEY does not hold"},
		"garbage as certificate": {garbage("CERTIFICATE"), goodKey, "tls.crt: decoding the CA certificate"},
		"not a CA": {newCA(t, key, func(c *x509.Certificate) { c.IsCA, c.KeyUsage = false, 0 }), goodKey,
			`tls.crt: the certificate of "test CA" is not that of a CA`},
		"a CA that may not sign": {crlOnly, goodKey, "tls.crt: the key usage"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := ReadAuthority(&corev1.Secret{
				ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "ca"},
				Data:       map[string][]byte{"tls.crt": tc.cert, "tls.key": tc.key},
			})
			require.ErrorContains(t, err, "CA Secret ns/ca: ")
			require.ErrorContains(t, err, tc.says)
		})
	}
}

func TestWhatIsNotSigned(t *testing.T) {
	key := ecdsaKey(t)
	authority := func(from, to time.Duration) Authority {
		a, err := parseAuthority(newCA(t, key, func(c *x509.Certificate) {
			c.NotBefore, c.NotAfter = signedAt.Add(from), signedAt.Add(to)
		}), pkcs8(t, key))
		require.NoError(t, err)
		return a
	}
	request, expected := asked(t, customRegistration("u", nil, nil))
	issuance := Issuance{CSR: request, Expected: expected, Now: signedAt, Random: rand.Reader}

	_, err := authority(-2*time.Hour, -time.Hour).Sign(issuance)
	require.ErrorContains(t, err, "the CA certificate expired at 2026-11-20T11:00:00Z: replace it")
	_, err = authority(time.Hour, 2*time.Hour).Sign(issuance)
	require.ErrorContains(t, err, "not valid before 2026-11-20T13:00:00Z")
	_, err = Authority{}.Sign(issuance)
	require.ErrorContains(t, err, "there is no CA")

	broken := request.DeepCopy()
	block, _ := pem.Decode(broken.Spec.Request)
	block.Bytes[len(block.Bytes)-1] ^= 1
	broken.Spec.Request = pem.EncodeToMemory(block)
	issuance.CSR = broken
	_, err = authority(-time.Hour, time.Hour).Sign(issuance)
	require.Error(t, err)
}

// FuzzJudgeAndSign feeds everything that the author of a request chooses to the judge of add-ons and signs what it
// approves, as the hub does: the certificate says what the registration of the hub says and nothing else.
func FuzzJudgeAndSign(f *testing.F) {
	authority, err := parseAuthority(newSEC1(f))
	require.NoError(f, err)
	registration := customRegistration("user-test", []string{"g1", "g2"}, []string{"unit"})
	request, _ := asked(f, registration)
	good, agent := request.Spec.Request, request.Spec.Username
	f.Add(good, agent, customSigner, "c1", "hello", "client auth,digital signature,key encipherment", int32(3600))
	f.Add(append([]byte("x"), good...), agent, customSigner, "c1", "hello", "client auth,server auth", int32(0))
	f.Add(append(bytes.Clone(good), good...), agent, "kubernetes.io/kube-apiserver-client", "c1", "hello", "any", int32(-1))
	f.Fuzz(func(
		t *testing.T, content []byte, requester, signerName, cluster, addon, usages string, seconds int32,
	) {
		request := &certificatesv1.CertificateSigningRequest{
			ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{
				names.LabelClusterName: cluster, names.LabelAddonName: addon,
			}},
			Spec: certificatesv1.CertificateSigningRequestSpec{
				Request: content, Username: requester, SignerName: signerName, ExpirationSeconds: ptr.To(seconds),
			},
		}
		for usage := range strings.SplitSeq(usages, ",") {
			request.Spec.Usages = append(request.Spec.Usages, certificatesv1.KeyUsage(usage))
		}
		v := approve.JudgeAddon(request, []addonv1beta1.RegistrationConfig{registration})
		require.LessOrEqual(t, len(v.Message), 1000)
		if v.Decision != approve.DecisionApprove {
			require.NotEmpty(t, v.Reason)
			return
		}
		id, ok := csr.ParseClusterUser(requester)
		require.True(t, ok && id.Cluster == cluster, "the requester is %q", requester)
		signed, err := authority.Sign(Issuance{CSR: request, Expected: v.Expected, Now: signedAt, Random: rand.Reader})
		require.NoError(t, err)
		certificate := parse(t, signed)
		require.Equal(t, "CN=user-test,OU=unit,O=g1+O=g2", certificate.Subject.String())
		require.Equal(t, []string{addon + ".addon.open-cluster-management.io"}, certificate.DNSNames)
		require.Empty(t, certificate.URIs)
		require.Empty(t, certificate.IPAddresses)
		require.Empty(t, certificate.EmailAddresses)
		require.False(t, certificate.IsCA)
		require.Equal(t, []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}, certificate.ExtKeyUsage)
		require.LessOrEqual(t, certificate.NotAfter.Sub(signedAt), 24*time.Hour)
	})
}

// FuzzParseAuthority reads any bytes as a CA: with what is read, what is signed verifies.
func FuzzParseAuthority(f *testing.F) {
	certPEM, keyPEM := newSEC1(f)
	f.Add(certPEM, keyPEM)
	f.Add(certPEM, []byte("-----BEGIN PRIVATE KEY-----\nMAA=\n-----END PRIVATE KEY-----\n"))
	f.Add([]byte("-----BEGIN CERTIFICATE-----\nMAA=\n-----END CERTIFICATE-----\n"), keyPEM)
	request, want := asked(f, customRegistration("u", nil, nil))
	f.Fuzz(func(t *testing.T, certificate, key []byte) {
		authority, err := parseAuthority(certificate, key)
		if err != nil {
			require.NotContains(t, err.Error(), "PRIVATE KEY-----", "no error quotes a key")
			return
		}
		signed, err := authority.Sign(Issuance{CSR: request, Expected: want, Now: signedAt, Random: rand.Reader})
		if err != nil {
			return // It is not valid at noon.
		}
		block, _ := pem.Decode(certificate)
		ca, err := x509.ParseCertificate(block.Bytes)
		require.NoError(t, err)
		require.NoError(t, parse(t, signed).CheckSignatureFrom(ca))
	})
}
