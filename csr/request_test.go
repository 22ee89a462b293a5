package csr

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	certificatesv1 "k8s.io/api/certificates/v1"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
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
