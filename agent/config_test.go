package agent

import (
	"bytes"
	"io"
	"math"
	"testing"
	"time"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"
)

func TestDefaultsAreValid(t *testing.T) {
	config := DefaultConfig()
	require.NoError(t, config.Validate())
}

// Row: spokeagent_test.go:48
// Row: options_test.go:16, options_test.go:147
func TestValidateSaysWhatIsWrongAndWhere(t *testing.T) {
	tests := map[string]struct {
		change func(c *Config)
		want   string
	}{
		"a cluster name with a dot":           {func(c *Config) { c.ClusterName = "a.b" }, "--spoke-cluster-name: \"a.b\""},
		"an agent name with a colon":          {func(c *Config) { c.AgentID = "a:b" }, "--agent-id"},
		"no namespace":                        {func(c *Config) { c.Namespace = "" }, "--namespace"},
		"nowhere to find a bootstrap":         {func(c *Config) { c.BootstrapSecret = "" }, "--bootstrap-kubeconfig"},
		"a hub secret that cannot be":         {func(c *Config) { c.HubSecret = "X" }, "--hub-kubeconfig-secret"},
		"the name of the group of all":        {func(c *Config) { c.ClusterName = "managed-clusters" }, "reserved"},
		"a credential that is no certificate": {func(c *Config) { c.RegistrationAuth = "awsirsa" }, "--registration-auth: only csr is there, got \"awsirsa\""},
		"an unknown driver of add-ons":        {func(c *Config) { c.AddonDriver = "grpc" }, "--addon-kubeclient-registration-auth"},
		"tokens of one second (W-30)":         {func(c *Config) { c.AddonTokenExpirationSeconds = 1 }, "--addon-token-expiration-seconds"},
		"a hub kubeconfig somewhere else":     {func(c *Config) { c.HubKubeconfigDir, c.HubKubeconfig = "/a", "/b/kubeconfig" }, "--hub-kubeconfig:"},
		"several hubs without their gate":     {func(c *Config) { c.BootstrapKubeconfigs = []string{"a", "b"} }, "MultipleHubs=true"},
		"the gate with one hub":               {func(c *Config) { c.Gates.MultipleHubs, c.BootstrapKubeconfigs = true, []string{"a"} }, "at least 2"},
		"a hub without a name": {func(c *Config) {
			c.Gates.MultipleHubs, c.BootstrapKubeconfigs = true, []string{"a", "secret:"}
		}, "neither a file nor a Secret"},
		"no patience with 401":                 {func(c *Config) { c.UnauthorizedAfter = 0 }, "--hub-unauthorized-timeout"},
		"a lifetime below an hour":             {func(c *Config) { c.CertExpirationSeconds = 600 }, "--client-cert-expiration-seconds"},
		"an address without https":             {func(c *Config) { c.ExternalServerURLs = []string{"http://x"} }, "https"},
		"no workers":                           {func(c *Config) { c.Workers = 0 }, "--workload-agent-workers"},
		"no watches":                           {func(c *Config) { c.MaxWatches = 0 }, "--work-max-watches"},
		"lists all the time":                   {func(c *Config) { c.WorkRelist = time.Second }, "--work-relist-period"},
		"no room for raw JSON":                 {func(c *Config) { c.MaxJSONRawLength = 0 }, "--max-json-raw-length"},
		"no room for copies of works":          {func(c *Config) { c.WorkCacheMiB = 0 }, "--work-cache-size"},
		"a negative grace period":              {func(c *Config) { c.EvictionGracePeriod = -1 }, "--appliedmanifestwork-eviction"},
		"a rate that is no number":             {func(c *Config) { c.HubQPS = float32(math.NaN()) }, "--hub-kube-api-qps"},
		"works from somewhere else than a hub": {func(c *Config) { c.ignored.workSource = "grpc" }, "--workload-source-driver"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			config := DefaultConfig()
			tc.change(&config)
			require.ErrorContains(t, config.Validate(), tc.want)
		})
	}
	config := DefaultConfig()
	config.ClusterName, config.Workers = "A", 0
	err := config.Validate()
	require.ErrorContains(t, err, "--spoke-cluster-name")
	require.ErrorContains(t, err, "--workload-agent-workers", "everything is told at once")
}

func TestParseFlags(t *testing.T) {
	var out bytes.Buffer
	config, err := ParseFlags([]string{"agent", "--cluster-name=c1", "--leader-elect=false", "--status-sync-interval=10s"}, &out)
	require.NoError(t, err)
	assert.Equal(t, "c1", config.ClusterName)
	assert.False(t, config.LeaderElect)
	assert.Contains(t, out.String(), "status follows watches", "a flag that changes nothing says so")

	out.Reset()
	_, err = ParseFlags([]string{"--version"}, &out)
	require.ErrorIs(t, err, pflag.ErrHelp)
	assert.Contains(t, out.String(), "spokelet ")

	_, err = ParseFlags([]string{"agent", "hub"}, &out)
	require.ErrorContains(t, err, "hub")
	_, err = ParseFlags([]string{"--no-such-flag"}, &out)
	require.Error(t, err)
}

// A Klusterlet passes these to the registration agent, the work agent or the one that is both (contract, registration
// 0.3 and work 9.1).
// Row: options_test.go:16
func TestTheFlagsOfAKlusterletAreAccepted(t *testing.T) {
	tests := map[string][]string{
		"one that is both": {
			"agent", "--spoke-cluster-name=c1", "--bootstrap-kubeconfig=/spoke/bootstrap/kubeconfig", "--agent-id=a1",
			"--workload-source-driver=kube", "--workload-source-config=/spoke/hub-kubeconfig/kubeconfig",
			"--feature-gates=RawFeedbackJsonString=true", "--feature-gates=ClusterProperty=true",
			"--spoke-external-server-urls=https://c1.example.com", "--status-sync-interval=60s",
			"--client-cert-expiration-seconds=3600", "--cluster-annotations=agent.open-cluster-management.io/x=1",
			"--kube-api-qps=50", "--kube-api-burst=100", "--hub-kube-api-qps=50", "--hub-kube-api-burst=100",
			"--max-custom-cluster-claims=20", "--reserved-cluster-claim-suffixes=a.io,b.io",
			"--addon-kubeclient-registration-auth=token", "--addon-token-expiration-seconds=600",
			"--appliedmanifestwork-eviction-grace-period=1h", "--tls-min-version=VersionTLS12",
			"--tls-cipher-suites=TLS_AES_128_GCM_SHA256", "--health-port=8444", "--registration-auth=csr",
		},
		"in hosted mode": {
			"agent", "--spoke-kubeconfig=/spoke/config/kubeconfig", "--terminate-on-files=/spoke/config/kubeconfig",
			"--terminate-on-files=/spoke/hub-kubeconfig/kubeconfig", "--disable-leader-election",
			"--cloudevents-client-id=c1-work-agent", "--cluster-healthcheck-period=1m",
			"--hub-kubeconfig-dir=/spoke/hub-kubeconfig", "--hub-kubeconfig=/spoke/hub-kubeconfig/kubeconfig",
			"--hub-kubeconfig-secret=other", "--max-json-raw-length=1024", "--max-feedback-watch=50",
		},
		"of several hubs": {
			"agent", "--feature-gates=MultipleHubs=true", "--bootstrap-kubeconfigs=/spoke/hub1/kubeconfig",
			"--bootstrap-kubeconfigs=secret:hub2", "--hub-connection-timeout-seconds=180",
		},
	}
	for name, args := range tests {
		t.Run(name, func(t *testing.T) {
			config, err := ParseFlags(args, io.Discard)
			require.NoError(t, err)
			require.NoError(t, config.Validate())
		})
	}
	config, err := ParseFlags(tests["of several hubs"], io.Discard)
	require.NoError(t, err)
	assert.Equal(t, 3*time.Minute, config.HubTimeout)
	assert.Equal(t, []bootstrapSource{
		{file: "/spoke/hub1/kubeconfig", secret: types.NamespacedName{Namespace: config.Namespace, Name: "bootstrap-hub-kubeconfig"}},
		{secret: types.NamespacedName{Namespace: config.Namespace, Name: "hub2"}},
	}, config.sources())
	config, err = ParseFlags(tests["in hosted mode"], io.Discard)
	require.NoError(t, err)
	assert.False(t, config.LeaderElect)
	_, err = ParseFlags([]string{"--hub-connection-timeout-seconds=179"}, io.Discard)
	require.ErrorContains(t, err, "at least 180")
}

func TestFeatureGates(t *testing.T) {
	tests := map[string]struct {
		text    string
		want    Gates
		problem string
	}{
		"nothing leaves the defaults": {"", Gates{ClusterClaim: true, AddonManagement: true}, ""},
		"one is turned off":           {"ClusterClaim=false", Gates{AddonManagement: true}, ""},
		"two are turned on": {
			"ClusterProperty=true, RawFeedbackJsonString=true",
			Gates{ClusterClaim: true, ClusterProperty: true, AddonManagement: true, RawFeedback: true}, "",
		},
		"another one is": {
			"MultipleHubs=true", Gates{ClusterClaim: true, AddonManagement: true, MultipleHubs: true}, "",
		},
		"one with nothing to turn is fine": {"V1beta1CSRAPICompatibility=true", DefaultGates(), ""},
		"an unknown one is named":          {"Claims=true", Gates{}, `unknown feature gate "Claims", known are AddonManagement, ClusterClaim, ClusterProperty`},
		"a value that is none":             {"ClusterClaim=on", Gates{}, `"ClusterClaim=on" is not of the form`},
		"no value":                         {"ClusterClaim", Gates{}, `"ClusterClaim" is not of the form`},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got := DefaultGates()
			err := got.Set(tc.text)
			if tc.problem != "" {
				require.ErrorContains(t, err, tc.problem)
				return
			}
			require.NoError(t, err)
			assert.Equal(t, tc.want, got)
		})
	}
	defaults := DefaultGates()
	assert.Equal(t, "AddonManagement=true,ClusterClaim=true,ClusterProperty=false,MultipleHubs=false,RawFeedbackJsonString=false", defaults.String())
}
