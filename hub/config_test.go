package hub

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/spokelet/spokelet/csr"
	"github.com/spokelet/spokelet/manifests"
)

func TestTheDefaultsCanWork(t *testing.T) {
	c := DefaultConfig()
	require.NoError(t, c.Validate())
}

func TestAConfigurationThatCannotWorkIsNamed(t *testing.T) {
	tests := map[string]struct {
		change func(*Config)
		want   string
	}{
		"a namespace that is none":         {func(c *Config) { c.Namespace = "A" }, "--namespace"},
		"a pattern of users":               {func(c *Config) { c.AutoApprovedCSRUsers = []string{"system:*"} }, "--auto-approved-csr-users"},
		"a port that is none":              {func(c *Config) { c.WebhookPort = 70000 }, "--webhook-port"},
		"an address that is not secure":    {func(c *Config) { c.WebhookURL = "http://x"; c.WebhookCAFile = "y" }, "--webhook-url"},
		"an address without a certificate": {func(c *Config) { c.WebhookURL = "https://x" }, "--webhook-ca-file"},
		"an address and a service":         {func(c *Config) { c.WebhookURL = "https://x"; c.WebhookService = "a/b" }, "--webhook-service"},
		"a service without namespace":      {func(c *Config) { c.WebhookService = "b" }, "namespace/name"},
		"a negative rate":                  {func(c *Config) { c.QPS = -1 }, "--kube-api-qps"},
		"a negative burst":                 {func(c *Config) { c.Burst = -1 }, "--kube-api-burst"},
		"nobody to do the work":            {func(c *Config) { c.Workers = 0 }, "--workers"},
	}
	for sentence, tc := range tests {
		t.Run(sentence, func(t *testing.T) {
			c := DefaultConfig()
			tc.change(&c)
			require.ErrorContains(t, c.Validate(), tc.want)
		})
	}
	c := DefaultConfig()
	c.Namespace, c.Workers = "", 0
	err := c.Validate()
	require.ErrorContains(t, err, "--namespace")
	require.ErrorContains(t, err, "--workers", "all that is wrong is told at once")
}

func TestFlags(t *testing.T) {
	var out bytes.Buffer
	c, err := ParseFlags([]string{
		"--auto-approved-csr-users=a,b", "--auto-approved-csr-users=c", "--placement=false", "--leader-elect=false",
	}, &out)
	require.NoError(t, err)
	assert.Equal(t, []string{"a", "b", "c"}, c.AutoApprovedCSRUsers)
	assert.Equal(t, csr.Trust{Users: []string{"a", "b", "c"}}, c.trust(), "nobody else by default")
	all, err := ParseFlags([]string{"--auto-approve-joined-clusters", "--auto-approve-bound-bootstrap"}, &out)
	require.NoError(t, err)
	assert.Equal(t, csr.Trust{Joined: true, Bound: true}, all.trust())
	assert.False(t, c.Placement)
	assert.False(t, c.LeaderElect)

	_, err = ParseFlags([]string{"--version"}, &out)
	require.ErrorIs(t, err, pflag.ErrHelp)
	assert.Contains(t, out.String(), "spokelet-hub ")
	_, err = ParseFlags([]string{"surplus"}, &out)
	require.ErrorContains(t, err, "surplus")
}

func TestWhereTheConversionIsServed(t *testing.T) {
	c := DefaultConfig()
	conv, err := conversion(c)
	require.NoError(t, err)
	assert.Nil(t, conv, "nothing is configured")

	c.WebhookService, c.WebhookCAFile = "ns/svc", filepath.Join(t.TempDir(), "ca.crt")
	conv, err = conversion(c)
	require.NoError(t, err)
	assert.Nil(t, conv, "there is no certificate yet")

	require.NoError(t, os.WriteFile(c.WebhookCAFile, []byte("pem"), 0o600))
	conv, err = conversion(c)
	require.NoError(t, err)
	assert.Equal(t, &apiextensionsv1.WebhookClientConfig{
		Service: &apiextensionsv1.ServiceReference{Namespace: "ns", Name: "svc"}, CABundle: []byte("pem"),
	}, conv)
}

func TestAConversionThatIsThereIsKept(t *testing.T) {
	url := "https://x/convert"
	have := &apiextensionsv1.CustomResourceConversion{
		Strategy: apiextensionsv1.WebhookConverter,
		Webhook: &apiextensionsv1.WebhookConversion{
			ClientConfig: &apiextensionsv1.WebhookClientConfig{URL: &url}, ConversionReviewVersions: []string{"v1"},
		},
	}
	u, err := decodeCRD(manifests.CRDs()[0])
	require.NoError(t, err)
	assert.NotContains(t, u.Object, "status")

	require.NoError(t, keepConversion(u, &apiextensionsv1.CustomResourceConversion{Strategy: apiextensionsv1.NoneConverter}))
	assert.NotContains(t, u.Object["spec"], "conversion")
	require.NoError(t, keepConversion(u, have))
	assert.Contains(t, u.Object["spec"], "conversion")
	_, err = u.MarshalJSON()
	require.NoError(t, err)
}

func TestTheWebhookWaitsForItsCertificate(t *testing.T) {
	c := DefaultConfig()
	c.WebhookCertDir = t.TempDir()
	w := &converter{config: c}
	assert.False(t, w.NeedLeaderElection(), "conversion is served in every replica")
	assert.False(t, w.certified())
	for _, file := range []string{"tls.crt", "tls.key"} {
		require.NoError(t, os.WriteFile(filepath.Join(c.WebhookCertDir, file), nil, 0o600))
	}
	assert.True(t, w.certified())
}

func TestTheSecondCacheKeepsOnlyWhatADeletionNeeds(t *testing.T) {
	at := metav1.NewTime(time.Unix(1, 0))
	work := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		Namespace: "c1", Name: "w", UID: "u", DeletionTimestamp: &at, Labels: map[string]string{"a": "b"},
		ManagedFields: []metav1.ManagedFieldsEntry{{}}, OwnerReferences: []metav1.OwnerReference{{}},
		Annotations: map[string]string{corev1.LastAppliedConfigAnnotation: "long", "priority": "5"},
	}}
	_, err := trimForeignWork(work)
	require.NoError(t, err)
	assert.Equal(t, metav1.ObjectMeta{
		Namespace: "c1", Name: "w", UID: "u", DeletionTimestamp: &at, Annotations: map[string]string{"priority": "5"},
	}, work.ObjectMeta)
}
