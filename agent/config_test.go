package agent

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/spokelet/spokelet/internal/command"
)

func TestDefaultsAreValid(t *testing.T) {
	config := DefaultConfig()
	require.NoError(t, config.Validate())
}

// Shows: registration/options-validated
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
		"a credential that is no certificate": {func(c *Config) { c.RegistrationAuth = "awsirsa" }, "--registration-auth: \"awsirsa\" is not supported, only csr is"},
		"an unknown driver of add-ons":        {func(c *Config) { c.AddonDriver = "grpc" }, "--addon-kubeclient-registration-auth"},
		"tokens of one second (W-30)":         {func(c *Config) { c.AddonTokenExpirationSeconds = 1 }, "--addon-token-expiration-seconds"},
		"a hub kubeconfig somewhere else":     {func(c *Config) { c.HubKubeconfigDir, c.HubKubeconfig = "/a", "/b/kubeconfig" }, "--hub-kubeconfig:"},
		"several hubs without their gate":     {func(c *Config) { c.BootstrapKubeconfigs = []string{"a", "b"} }, "MultipleHubs=true"},
		"the gate with one hub":               {func(c *Config) { c.Gates.MultipleHubs, c.BootstrapKubeconfigs = true, []string{"a"} }, "at least 2"},
		"a hub without a name": {func(c *Config) {
			c.Gates.MultipleHubs, c.BootstrapKubeconfigs = true, []string{"a", "secret:"}
		}, "neither a file nor a Secret"},
		"namespaces of hosted add-ons without hosted mode": {
			func(c *Config) { c.HostedAddonNamespaces = []string{"a"} }, "which --spoke-kubeconfig turns on",
		},
		"a namespace of hosted add-ons that cannot be": {
			func(c *Config) { c.SpokeKubeconfig, c.HostedAddonNamespaces = "/a", []string{"b", "C"} },
			"--hosted-addon-namespaces: \"C\" is no name of a namespace",
		},
		"no patience with 401":        {func(c *Config) { c.UnauthorizedAfter = 0 }, "--hub-unauthorized-timeout"},
		"a lifetime below an hour":    {func(c *Config) { c.CertExpirationSeconds = 600 }, "--client-cert-expiration-seconds"},
		"an address without https":    {func(c *Config) { c.ExternalServerURLs = []string{"http://x"} }, "https"},
		"no workers":                  {func(c *Config) { c.Workers = 0 }, "--workload-agent-workers"},
		"no watches":                  {func(c *Config) { c.MaxWatches = 0 }, "--work-max-watches"},
		"lists all the time":          {func(c *Config) { c.WorkRelist = time.Second }, "--work-relist-period"},
		"no room for raw JSON":        {func(c *Config) { c.MaxJSONRawLength = 0 }, "--max-json-raw-length"},
		"no room for copies of works": {func(c *Config) { c.WorkCacheMiB = 0 }, "--work-cache-size"},
		"a policy for missing works that is none": {
			func(c *Config) { c.EvictMissingWorks = "never" }, "--evict-missing-works: must be hold or grace",
		},
		"a negative grace period":              {func(c *Config) { c.EvictionGracePeriod = -1 }, "--appliedmanifestwork-eviction"},
		"a rate that is no number":             {func(c *Config) { c.HubQPS = float32(math.NaN()) }, "--hub-kube-api-qps"},
		"neither registration nor works":       {func(c *Config) { c.Duties = Duties{} }, "--duties"},
		"works without a way to the hub":       {func(c *Config) { c.Duties.Registration = false }, "--hub-kubeconfig-dir"},
		"a version of TLS that is not served":  {func(c *Config) { c.TLS.MinVersion = "VersionTLS10" }, "--tls-min-version: \"VersionTLS10\""},
		"a cipher suite that is none":          {func(c *Config) { c.TLS.CipherSuites = []string{"AES"} }, "--tls-cipher-suites: \"AES\""},
		"a port that is none":                  {func(c *Config) { c.HealthPort = 65536 }, "--health-port"},
		"a leader that outlives its Lease":     {func(c *Config) { c.LeaseDuration = time.Minute }, "--leader-election-lease-duration"},
		"a leader that renews too rarely":      {func(c *Config) { c.RetryPeriod = time.Minute * 2 }, "--leader-election-retry-period"},
		"works from somewhere else than a hub": {func(c *Config) { c.WorkSource = "grpc" }, "--workload-source-driver"},
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

func TestFeatureGates(t *testing.T) {
	tests := map[string]struct {
		text    string
		want    Gates
		notes   []string
		problem string
	}{
		"nothing leaves the defaults": {text: "", want: Gates{ClusterClaim: true, AddonManagement: true}},
		"one is turned off":           {text: "ClusterClaim=false", want: Gates{AddonManagement: true}},
		"two are turned on": {
			text: "ClusterProperty=true, RawFeedbackJsonString=true",
			want: Gates{ClusterClaim: true, ClusterProperty: true, AddonManagement: true, RawFeedback: true},
		},
		"another one is": {
			text: "MultipleHubs=true", want: Gates{ClusterClaim: true, AddonManagement: true, MultipleHubs: true},
		},
		"one with nothing to turn is noted": {
			text: "V1beta1CSRAPICompatibility=true,SIGPlacementDecision=true", want: DefaultGates(),
			notes: []string{"--feature-gates=SIGPlacementDecision", "--feature-gates=V1beta1CSRAPICompatibility"},
		},
		"all that are alpha": {
			text: "AllAlpha=true,MultipleHubs=false",
			want: Gates{ClusterClaim: true, ClusterProperty: true, AddonManagement: true, RawFeedback: true, ApplyLatency: true},
		},
		"none that is beta":      {text: "AllBeta=false", want: Gates{}},
		"an unknown one is told": {text: "Claims=true", want: DefaultGates(), notes: []string{"--feature-gates=Claims"}},
		"a value that is none":   {text: "ClusterClaim=on", problem: `"ClusterClaim=on" is not of the form name=true or name=false`},
		"no value":               {text: "ClusterClaim", problem: `"ClusterClaim" is not of the form name=true or name=false`},
		"an unknown one holds no other": {
			text: "ClusterClaim=false,Claims=true", want: Gates{AddonManagement: true}, notes: []string{"--feature-gates=Claims"},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got := DefaultGates()
			var foreign command.Foreign
			err := (&command.Gates{Known: got.known(), Notes: &foreign}).Set(tc.text)
			if tc.problem != "" {
				require.ErrorContains(t, err, tc.problem)
				assert.Equal(t, DefaultGates(), got)
				return
			}
			require.NoError(t, err)
			assert.Equal(t, tc.want, got)
			var notes []string
			for _, note := range foreign.Notes() {
				assert.NotEmpty(t, note.Reason)
				notes = append(notes, note.Flag)
			}
			assert.Equal(t, tc.notes, notes)
		})
	}
	defaults := DefaultGates()
	assert.Equal(t, "AddonManagement=true,ClusterClaim=true,ClusterProperty=false,ManifestWorkApplyLatency=false,MultipleHubs=false,RawFeedbackJsonString=false",
		(&command.Gates{Known: defaults.known()}).String())
}
