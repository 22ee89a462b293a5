package agent

import (
	"bytes"
	"math"
	"testing"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestDefaultsAreValid(t *testing.T) {
	config := DefaultConfig()
	require.NoError(t, config.Validate())
}

func TestValidateSaysWhatIsWrongAndWhere(t *testing.T) {
	tests := map[string]struct {
		change func(c *Config)
		want   string
	}{
		"a cluster name with a dot":            {func(c *Config) { c.ClusterName = "a.b" }, "--spoke-cluster-name: \"a.b\""},
		"an agent name with a colon":           {func(c *Config) { c.AgentID = "a:b" }, "--agent-id"},
		"no namespace":                         {func(c *Config) { c.Namespace = "" }, "--namespace"},
		"nowhere to find a bootstrap":          {func(c *Config) { c.BootstrapSecret = "" }, "--bootstrap-kubeconfig"},
		"another hub secret":                   {func(c *Config) { c.HubSecret = "x" }, "--hub-kubeconfig-secret"},
		"a lifetime below an hour":             {func(c *Config) { c.CertExpirationSeconds = 600 }, "--client-cert-expiration-seconds"},
		"an address without https":             {func(c *Config) { c.ExternalServerURLs = []string{"http://x"} }, "https"},
		"no workers":                           {func(c *Config) { c.Workers = 0 }, "--workload-agent-workers"},
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
