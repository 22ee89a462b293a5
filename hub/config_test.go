package hub

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/spokelet/spokelet/csr/approve"
	"github.com/spokelet/spokelet/hub/addon"
	"github.com/spokelet/spokelet/internal/command"
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
		"a namespace that is none":            {func(c *Config) { c.Namespace = "A" }, "--namespace"},
		"a pattern of users":                  {func(c *Config) { c.AutoApprovedCSRUsers = []string{"system:*"} }, "--auto-approved-csr-users"},
		"a lifetime that nobody grants":       {func(c *Config) { c.MaxAddOnCertificateLifetime = time.Minute }, "--max-addon-certificate-lifetime"},
		"a port that is none":                 {func(c *Config) { c.WebhookPort = 70000 }, "--webhook-port"},
		"an address that is not secure":       {func(c *Config) { c.WebhookURL = "http://x"; c.WebhookCAFile = "y" }, "--webhook-url"},
		"an address without a certificate":    {func(c *Config) { c.WebhookURL = "https://x"; c.WebhookCertDir = "y" }, "--webhook-ca-file"},
		"an address and a service":            {func(c *Config) { c.WebhookURL = "https://x"; c.WebhookService = "a/b" }, "--webhook-service"},
		"a service without namespace":         {func(c *Config) { c.WebhookService = "b" }, "namespace/name"},
		"a negative rate":                     {func(c *Config) { c.QPS = -1 }, "--kube-api-qps"},
		"a negative burst":                    {func(c *Config) { c.Burst = -1 }, "--kube-api-burst"},
		"a version of TLS that is not served": {func(c *Config) { c.TLS.MinVersion = "x" }, "--tls-min-version"},
		"nobody to do the work":               {func(c *Config) { c.Workers = 0 }, "--workers"},
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
	assert.Equal(t, approve.Trust{Users: []string{"a", "b", "c"}}, c.trust(), "nobody else by default")
	all, err := ParseFlags([]string{"--auto-approve-joined-clusters", "--auto-approve-bound-bootstrap"}, &out)
	require.NoError(t, err)
	assert.Equal(t, approve.Trust{Joined: true, Bound: true}, all.trust())
	assert.False(t, c.Placement)
	assert.False(t, c.LeaderElect)

	assert.Equal(t, addon.LastCounts, c.ConfigPrecedence)
	other, err := ParseFlags([]string{"--config-precedence=First"}, &out)
	require.NoError(t, err)
	assert.Equal(t, addon.FirstCounts, other.ConfigPrecedence)
	other.ConfigPrecedence = "Middle"
	require.ErrorContains(t, other.Validate(), "--config-precedence")

	_, err = ParseFlags([]string{"--version"}, &out)
	require.ErrorIs(t, err, pflag.ErrHelp)
	assert.Contains(t, out.String(), "spokelet-hub ")
	_, err = ParseFlags([]string{"surplus"}, &out)
	require.ErrorContains(t, err, "surplus")
}

// TestCommandLinesOfOCMWork parses what OCM's operator and its users give to the programs of its hub.
func TestCommandLinesOfOCMWork(t *testing.T) {
	parse := func(args ...string) (Config, error) {
		c, err := ParseFlags(args, &bytes.Buffer{})
		if err == nil {
			err = c.Validate()
		}
		return c, err
	}
	t.Run("flags without a meaning here are told once", func(t *testing.T) {
		c, err := parse("controller", "--config=x", "--listen", ":8443", "--vmodule=a=1", "--log-flush-frequency=5s",
			"--terminate-on-files=x", "--auto-approved-arn-patterns=x", "--leader-election-namespace=x",
			"--logtostderr", "--cloudevents-client-id=x", "--config=y")
		require.NoError(t, err)
		notes := c.foreign.notes.Notes()
		assert.Len(t, notes, 9)
		assert.Contains(t, notes, command.Note{
			Flag: "--listen", Reason: "see --health-probe-bind-address and --metrics-bind-address",
		})
	})
	t.Run("labels of what belongs to a cluster are taken, but none with a meaning", func(t *testing.T) {
		c, err := parse("--labels=team=edge,app.kubernetes.io/part-of=fleet,example.com/a=")
		require.NoError(t, err)
		assert.Equal(t, map[string]string{"team": "edge", "app.kubernetes.io/part-of": "fleet", "example.com/a": ""},
			c.ClusterLabels)
		assert.Empty(t, c.foreign.notes.Notes())
		c, err = parse("--labels=rbac.authorization.k8s.io/aggregate-to-admin=true,addon.spokelet.io/hub-permission=true," +
			"open-cluster-management.io/cluster-name=c,kubernetes.io/x=y,a b=c,ok=fine")
		require.NoError(t, err)
		assert.Equal(t, map[string]string{"ok": "fine"}, c.ClusterLabels)
		assert.Len(t, c.foreign.notes.Notes(), 5)
	})
	t.Run("users are taken under their former name", func(t *testing.T) {
		c, err := parse("--cluster-auto-approval-users=a,b", "--feature-gates=ManagedClusterAutoApproval=true")
		require.NoError(t, err)
		assert.Equal(t, []string{"a", "b"}, c.AutoApprovedCSRUsers)
		c, err = parse("--cluster-auto-approval-users=a", "--auto-approved-csr-users=c")
		require.NoError(t, err)
		assert.Equal(t, []string{"c"}, c.AutoApprovedCSRUsers, "the new name comes first")
		c, err = parse("--auto-approved-csr-users=c", "--feature-gates=ManagedClusterAutoApproval=false")
		require.NoError(t, err)
		assert.Empty(t, c.AutoApprovedCSRUsers)
		assert.Len(t, c.foreign.notes.Notes(), 1)
		_, err = parse("--cluster-auto-approval-users=system:*")
		require.ErrorContains(t, err, "users are named exactly")
	})
	t.Run("gates", func(t *testing.T) {
		c, err := parse("--feature-gates=CleanUpCompletedManifestWork=false,ClusterProfile=true,AllBeta=true,SIGPlacementDecision=true",
			"--feature-gates=PlacementDebugServer=true")
		require.NoError(t, err)
		assert.False(t, c.WorkTTL)
		assert.Len(t, c.foreign.notes.Notes(), 4)
		assert.Contains(t, fmt.Sprint(c.foreign.notes.Notes()), "conditions of a Placement say what it selects, and why")
	})
	t.Run("what a later release has is told, or refused", func(t *testing.T) {
		later := []string{"--feature-gates=InTwoYears=true", "--in-two-years", "--enabled-registration-drivers=csr,spiffe", "--work-driver=nats"}
		c, err := parse(later...)
		require.NoError(t, err)
		lines := c.foreign.notes.Lines()
		assert.Len(t, lines, 4)
		assert.Contains(t, lines[1], `--feature-gates=InTwoYears has no effect: unknown feature gate "InTwoYears", known are `)
		_, err = parse(append(later, "--strict-flags")...)
		for _, part := range []string{"InTwoYears", "--in-two-years", "spiffe", "nats"} {
			require.ErrorContains(t, err, part)
		}
	})
	t.Run("leader election", func(t *testing.T) {
		c, err := parse("--leader-election-lease-duration=137s", "--leader-election-renew-deadline=107s",
			"--leader-election-retry-period=26s")
		require.NoError(t, err)
		assert.Equal(t, 137*time.Second, c.LeaseDuration)
		_, err = parse("--leader-election-renew-deadline=137s")
		require.ErrorContains(t, err, "must be above --leader-election-renew-deadline")
		_, err = parse("--leader-election-retry-period=0s")
		require.ErrorContains(t, err, "must be above 0")
		c, err = parse("--disable-leader-election")
		require.NoError(t, err)
		assert.False(t, c.LeaderElect)
	})
	t.Run("drivers", func(t *testing.T) {
		_, err := parse("--enabled-registration-drivers=csr,token", "--work-driver=kube")
		require.NoError(t, err)
		_, err = parse("--enabled-registration-drivers=csr,awsirsa", "--work-driver=mqtt")
		require.ErrorContains(t, err, `"awsirsa" is not supported; csr and token are there`)
		require.ErrorContains(t, err, `--work-driver: "mqtt" is not supported`)
	})
	t.Run("what is removed with a cluster", func(t *testing.T) {
		c, err := parse("--gc-resource-list=addon.open-cluster-management.io/v1alpha1/managedclusteraddons,"+
			"work.open-cluster-management.io/v1/manifestworks", "--gc-resource-list=example.com/v1/things")
		require.NoError(t, err)
		require.Len(t, c.foreign.notes.Notes(), 1)
		assert.Equal(t, "--gc-resource-list=example.com/v1/things", c.foreign.notes.Notes()[0].Flag)
		assert.Contains(t, c.foreign.notes.Notes()[0].Reason, "they are not removed with a cluster")
		_, err = parse("--gc-resource-list=things")
		require.ErrorContains(t, err, "group/version/resource")
	})
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
