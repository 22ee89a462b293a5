package csr

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	certificatesv1 "k8s.io/api/certificates/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"

	"github.com/spokelet/spokelet/internal/names"
)

func subject(user string, groups ...string) addonv1beta1.BaseSubject {
	return addonv1beta1.BaseSubject{User: user, Groups: groups}
}

func kube(user string, groups ...string) addonv1beta1.RegistrationConfig {
	return addonv1beta1.RegistrationConfig{Type: addonv1beta1.KubeClient, KubeClient: &addonv1beta1.KubeClientConfig{
		Subject: addonv1beta1.KubeClientSubject{BaseSubject: subject(user, groups...)},
	}}
}

func custom(signerName, user string, groups ...string) addonv1beta1.RegistrationConfig {
	return addonv1beta1.RegistrationConfig{Type: addonv1beta1.CustomSigner, CustomSigner: &addonv1beta1.CustomSignerConfig{
		SignerName: signerName,
		Subject:    addonv1beta1.Subject{BaseSubject: subject(user, groups...), OrganizationUnits: []string{"unit"}},
	}}
}

func TestForCluster(t *testing.T) {
	got := ForCluster("c1", "a1")
	assert.Equal(t, Request{
		GenerateName: "c1-",
		Labels:       map[string]string{"open-cluster-management.io/cluster-name": "c1"},
		Signer:       "kubernetes.io/kube-apiserver-client",
		User:         "system:open-cluster-management:c1:a1",
		Groups:       []string{"system:open-cluster-management:c1", "system:open-cluster-management:managed-clusters"},
	}, got)
}

// Shows: registration/request-for-registration
func TestForAddon(t *testing.T) {
	labels := map[string]string{
		"open-cluster-management.io/cluster-name": "c1", "open-cluster-management.io/addon-name": "hello",
	}
	dns := []string{"hello.addon.open-cluster-management.io"}
	defaultUser := "system:open-cluster-management:cluster:c1:addon:hello:agent:hello"
	tests := map[string]struct {
		registration addonv1beta1.RegistrationConfig
		want         Request
		secret       string
	}{
		"a client of the hub without a subject gets the default one": {
			registration: addonv1beta1.RegistrationConfig{Type: addonv1beta1.KubeClient},
			want: Request{
				GenerateName: "addon-c1-hello-", Labels: labels, DNSNames: dns,
				Signer: certificatesv1.KubeAPIServerClientSignerName, User: defaultUser,
				Groups: []string{"system:open-cluster-management:cluster:c1:addon:hello"},
			},
			secret: "hello-hub-kubeconfig",
		},
		"a client of the hub gets the subject that the hub says": {
			registration: kube("u", "g1", "g2"),
			want: Request{
				GenerateName: "addon-c1-hello-", Labels: labels, DNSNames: dns,
				Signer: certificatesv1.KubeAPIServerClientSignerName, User: "u", Groups: []string{"g1", "g2"},
			},
			secret: "hello-hub-kubeconfig",
		},
		"a custom signer may give no groups": {
			registration: custom("example.com/signer", ""),
			want: Request{
				GenerateName: "addon-c1-hello-", Labels: labels, DNSNames: dns,
				Signer: "example.com/signer", User: defaultUser, OrganizationalUnits: []string{"unit"},
			},
			secret: "hello-example.com-signer-client-cert",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := ForAddon("c1", "hello", tc.registration)
			require.NoError(t, err)
			assert.Equal(t, tc.want, got)
			assert.Equal(t, tc.secret, AddonSecretName("hello", tc.registration))
		})
	}
}

// Shows: registration/request-for-registration
func TestForAddonSaysWhatIsWrong(t *testing.T) {
	tests := map[string]struct {
		addon        string
		registration addonv1beta1.RegistrationConfig
		want         string
	}{
		"a name that is too long for a label": {
			addon: strings.Repeat("a", 64), registration: kube("u"),
			want: "cannot be the value of label open-cluster-management.io/addon-name",
		},
		"a custom signer without a name": {
			addon: "hello", registration: custom("", "u"),
			want: "a registration of type customSigner needs customSigner.signerName",
		},
		"an unknown type": {
			addon: "hello", registration: addonv1beta1.RegistrationConfig{Type: "token"},
			want: `registration type "token" is unknown: it must be kubeClient or customSigner`,
		},
		"a signer that makes the Secret name too long": {
			addon: "hello", registration: custom("example.com/"+strings.Repeat("a", 300), "u"),
			want: "longer than the 253 characters",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := ForAddon("c1", tc.addon, tc.registration)
			assert.ErrorContains(t, err, tc.want)
		})
	}
}

func TestBuild(t *testing.T) {
	key, err := NewKey()
	require.NoError(t, err)
	assert.Contains(t, string(key), "BEGIN EC PRIVATE KEY")
	want, err := ForAddon("c1", "hello", custom("example.com/signer", "u", "g1", "g2"))
	require.NoError(t, err)
	seconds := int32(3600)
	want.ExpirationSeconds = &seconds

	got, err := want.Build(key)
	require.NoError(t, err)
	assert.Equal(t, "addon-c1-hello-", got.GenerateName)
	assert.Equal(t, want.Labels, got.Labels)
	assert.Equal(t, "example.com/signer", got.Spec.SignerName)
	assert.Equal(t, &seconds, got.Spec.ExpirationSeconds)
	assert.Equal(t, []certificatesv1.KeyUsage{"digital signature", "key encipherment", "client auth"}, got.Spec.Usages)
	parsed, err := ParseRequest(got.Spec.Request)
	require.NoError(t, err)
	require.NoError(t, parsed.CheckSignature())
	assert.Equal(t, "u", parsed.Subject.CommonName)
	assert.ElementsMatch(t, []string{"g1", "g2"}, parsed.Subject.Organization)
	assert.Equal(t, []string{"unit"}, parsed.Subject.OrganizationalUnit)
	assert.Equal(t, []string{"hello.addon.open-cluster-management.io"}, parsed.DNSNames)

	_, err = want.Build([]byte("no key"))
	assert.ErrorContains(t, err, "the private key holds no PEM block of type EC PRIVATE KEY")
}

func TestParseRequestSaysWhatIsWrong(t *testing.T) {
	_, err := ParseRequest([]byte("garbage"))
	require.ErrorContains(t, err, "no PEM block of type CERTIFICATE REQUEST")
	_, err = ParseRequest([]byte("-----BEGIN CERTIFICATE REQUEST-----\nAAAA\n-----END CERTIFICATE REQUEST-----\n"))
	assert.ErrorContains(t, err, "decoding a certificate request")
}

// encode builds a request that a key signed.
func encode(tb testing.TB, key any) []byte {
	tb.Helper()
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{}, key)
	require.NoError(tb, err)
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der})
}

func TestARequestIsOnePEMBlockAndNothingBesides(t *testing.T) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	good := string(encode(t, key))
	block, _ := pem.Decode([]byte(good))
	headers := pem.EncodeToMemory(&pem.Block{Type: block.Type, Headers: map[string]string{"a": "b"}, Bytes: block.Bytes})
	for sentence, tc := range map[string]struct{ request, says string }{
		"a good one":                    {good, ""},
		"space around it":               {"\n\n" + good + "\n \n", ""},
		"nothing":                       {"", "must be one PEM block of type CERTIFICATE REQUEST"},
		"another type":                  {strings.ReplaceAll(good, " REQUEST", ""), "must be one PEM block of type"},
		"text before it":                {"hello\n" + good, "must be one PEM block of type"},
		"text behind it":                {good + "hello", "without headers"},
		"a second one":                  {good + good, "without headers"},
		"a header":                      {string(headers), "without headers"},
		"no end":                        {good[:len(good)/2], "without headers"},
		"a block that holds no request": {"-----BEGIN CERTIFICATE REQUEST-----\nAAAA\n-----END CERTIFICATE REQUEST-----\n", "cannot be decoded ("},
	} {
		t.Run(sentence, func(t *testing.T) {
			parsed, err := ParseStrictly([]byte(tc.request))
			if tc.says == "" {
				require.NoError(t, err)
				assert.NotNil(t, parsed)
				return
			}
			assert.ErrorContains(t, err, tc.says)
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
	p256, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	p384, err := ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	require.NoError(t, err)
	for sentence, tc := range map[string]struct {
		key  any
		says string
	}{
		"RSA 1024 is too short":    {weakRSA, "its RSA key has 1024 bits, and must have 2048 to 8192"},
		"RSA 2048 is accepted":     {goodRSA, ""},
		"Ed25519 is accepted":      {edwards, ""},
		"ECDSA P-224 is too short": {p224, "its ECDSA key has 224 bits, and 256 are needed"},
		"ECDSA P-256 is accepted":  {p256, ""},
		"ECDSA P-384 is accepted":  {p384, ""},
	} {
		t.Run(sentence, func(t *testing.T) {
			parsed, err := ParseStrictly(encode(t, tc.key))
			require.NoError(t, err)
			assert.Equal(t, tc.says, CheckKey(parsed))
		})
	}
	t.Run("a key that did not sign the request is not accepted", func(t *testing.T) {
		parsed, err := ParseStrictly(encode(t, p256))
		require.NoError(t, err)
		parsed.PublicKey = p384.Public()
		assert.Equal(t, "it is not signed by the key that it carries", CheckKey(parsed))
		parsed.PublicKey = nil
		assert.Equal(t, "its key is neither ECDSA nor Ed25519 nor RSA", CheckKey(parsed))
	})
	for bits, says := range map[uint]string{8192: "it is not signed", 8193: "its RSA key has 8193 bits"} {
		long := &rsa.PublicKey{N: new(big.Int).Lsh(big.NewInt(1), bits-1), E: 65537}
		assert.Contains(t, CheckKey(&x509.CertificateRequest{PublicKey: long}), says)
	}
}

func TestTheLabelsOfARequestNameItsSubject(t *testing.T) {
	for sentence, tc := range map[string]struct {
		labels         map[string]string
		cluster, addon string
		addonLabel     bool
	}{
		"none":                       {},
		"that of a cluster":          {map[string]string{names.LabelClusterName: "c1"}, "c1", "", false},
		"those of an add-on":         {map[string]string{names.LabelClusterName: "c1", names.LabelAddonName: "a"}, "c1", "a", true},
		"an empty one for an add-on": {map[string]string{names.LabelAddonName: ""}, "", "", true},
	} {
		t.Run(sentence, func(t *testing.T) {
			request := &certificatesv1.CertificateSigningRequest{ObjectMeta: metav1.ObjectMeta{Labels: tc.labels}}
			cluster, addon, addonLabel := Subject(request)
			assert.Equal(t, tc.cluster, cluster)
			assert.Equal(t, tc.addon, addon)
			assert.Equal(t, tc.addonLabel, addonLabel)
		})
	}
}

func TestARegistrationThatIsIncompleteHasNoSecret(t *testing.T) {
	for _, r := range []addonv1beta1.RegistrationConfig{
		{}, {Type: addonv1beta1.CustomSigner}, custom("", "u"), {CustomSigner: custom("example.com/s", "u").CustomSigner},
	} {
		assert.Empty(t, AddonSecretName("hello", r))
	}
}

// FuzzParseRequest reads any bytes as a request: what is read stays the same when it is written again.
func FuzzParseRequest(f *testing.F) {
	key, err := NewKey()
	require.NoError(f, err)
	request, err := ForCluster("c1", "a").Build(key)
	require.NoError(f, err)
	f.Add(request.Spec.Request)
	f.Add([]byte("-----BEGIN CERTIFICATE REQUEST-----\nMAA=\n-----END CERTIFICATE REQUEST-----\n"))
	f.Fuzz(func(t *testing.T, content []byte) {
		parsed, err := ParseRequest(content)
		if err != nil {
			require.Nil(t, parsed)
			return
		}
		again, err := ParseRequest(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: parsed.Raw}))
		require.NoError(t, err)
		require.Equal(t, parsed.Raw, again.Raw)
		require.Equal(t, parsed.Subject.String(), again.Subject.String())
		require.Equal(t, parsed.DNSNames, again.DNSNames)
	})
}
