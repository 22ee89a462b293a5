package hub

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/spokelet/spokelet/csr"
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
		"an address without a certificate": {func(c *Config) { c.WebhookURL = "https://x"; c.WebhookCertDir = "y" }, "--webhook-ca-file"},
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

func TestWhereTheWebhookIsFound(t *testing.T) {
	path := "/convert"
	for sentence, tc := range map[string]struct {
		change func(*Config)
		want   *apiextensionsv1.WebhookClientConfig
		names  []string
	}{
		"nowhere unless somebody says so": {change: func(*Config) {}},
		"at a service, by the names that the API server calls it": {
			func(c *Config) { c.WebhookService = "ns/svc" },
			&apiextensionsv1.WebhookClientConfig{
				Service: &apiextensionsv1.ServiceReference{Namespace: "ns", Name: "svc", Path: &path},
			},
			[]string{"svc.ns.svc", "svc.ns.svc.cluster.local", "svc.ns"},
		},
		"at an address": {
			func(c *Config) { c.WebhookURL = "https://10.0.0.1:9443/convert" },
			&apiextensionsv1.WebhookClientConfig{URL: new("https://10.0.0.1:9443/convert")}, []string{"10.0.0.1"},
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			c := DefaultConfig()
			tc.change(&c)
			require.NoError(t, c.Validate())
			at, names, err := c.webhookAddress()
			require.NoError(t, err)
			assert.Equal(t, tc.want, at)
			assert.Equal(t, tc.names, names)
		})
	}
}

func TestReadinessSaysWhatFails(t *testing.T) {
	var wrong error
	handler := health([]check{
		{"cache", func(context.Context) error { return nil }},
		{"conversion", func(context.Context) error { return wrong }},
	})
	get := func(path string) (int, string) {
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil))
		return w.Code, w.Body.String()
	}
	code, text := get("/readyz")
	assert.Equal(t, http.StatusOK, code)
	assert.Equal(t, "[+]cache ok\n[+]conversion ok\n", text)
	wrong = errors.New("nobody converts")
	code, text = get("/readyz")
	assert.Equal(t, http.StatusServiceUnavailable, code)
	assert.Equal(t, "[+]cache ok\n[-]conversion: nobody converts\n", text)
	code, _ = get("/healthz")
	assert.Equal(t, http.StatusOK, code, "to restart it would help nobody")
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
