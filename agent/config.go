package agent

import (
	"errors"
	"fmt"
	"math"
	"net/url"
	"strings"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/spokelet/spokelet/agent/cluster"
	"github.com/spokelet/spokelet/internal/command"
	"github.com/spokelet/spokelet/internal/names"
)

const (
	// minCertSeconds is the shortest lifetime that may be asked for a certificate (contract, registration 0.3).
	minCertSeconds = 3600
	// off is the address of an endpoint that is not served.
	off = "0"
)

// Config is everything that can be set. DefaultConfig returns the defaults, AddFlags binds the flags of OCM to it.
type Config struct {
	// ClusterName is the name of the cluster on the hub; empty takes the one of a former agent, else a random one.
	ClusterName string
	// AgentID is the name of the agent in its certificate and the owner of its AppliedManifestWorks; empty takes the one
	// of a former agent, else a random one for the certificate and the hash of the hub for the works.
	AgentID string
	// Namespace is where the agent keeps its Secrets and its leader lease.
	Namespace string

	// BootstrapKubeconfig is the path of the bootstrap kubeconfig; empty reads the Secret BootstrapSecret instead.
	BootstrapKubeconfig string
	// BootstrapSecret is the Secret in Namespace whose key kubeconfig is the bootstrap kubeconfig.
	BootstrapSecret string
	// HubSecret is the Secret in Namespace that keeps the agent's hub credential; it cannot be renamed yet.
	HubSecret string
	// Kubeconfig is the path of a kubeconfig of the cluster that the agent runs on; empty means the pod's own.
	Kubeconfig string
	// SpokeKubeconfig is the path of a kubeconfig of the managed cluster where that is another cluster (hosted mode).
	SpokeKubeconfig string

	// CertExpirationSeconds asks for a lifetime of the certificate; zero leaves it to the signer.
	CertExpirationSeconds int32
	// ClusterAnnotations are set when the ManagedCluster is created; see join.ClusterOptions.
	ClusterAnnotations map[string]string
	// ExternalServerURLs are the https addresses of the cluster that its ManagedCluster tells.
	ExternalServerURLs []string
	// Claims says which claims are reported.
	Claims cluster.ClaimRules
	// EvictionGracePeriod is how long an AppliedManifestWork without a ManifestWork is kept.
	EvictionGracePeriod time.Duration
	// Workers is the number of ManifestWorks that are worked on at once.
	Workers int

	// SpokeQPS and SpokeBurst limit requests to the spoke; zero leaves that to priority and fairness of the server.
	SpokeQPS   float32
	SpokeBurst int
	// HubQPS and HubBurst limit requests to the hub; zero leaves that to priority and fairness of the server.
	HubQPS   float32
	HubBurst int

	// LeaderElect makes the agent wait until it holds the lease LeaderLease in Namespace.
	LeaderElect bool
	// HealthAddress serves /healthz and /readyz over http; "0" is off.
	HealthAddress string
	// MetricsAddress serves /metrics over http; "0" is off.
	MetricsAddress string
	// PprofAddress serves /debug/pprof; "0" is off.
	PprofAddress string
	// Verbosity is the highest level of log lines that are written.
	Verbosity int

	ignored ignored
}

// ignored takes the values of flags that are accepted because a Klusterlet passes them, and that change nothing.
type ignored struct {
	hubKubeconfig, hubKubeconfigDir, workSource, workConfig string
	statusSyncInterval                                      time.Duration
}

// The rate at which one agent may ask the hub when nothing is said: a hub has thousands of agents, and 200 works that
// arrive at once cost an agent 400 requests.
const (
	defaultHubQPS   = 200
	defaultHubBurst = 500
)

// DefaultConfig returns the defaults, with the namespace of the pod if there is one.
func DefaultConfig() Config {
	return Config{
		Namespace:           command.Namespace(names.NamespaceAgent),
		BootstrapSecret:     names.SecretBootstrap,
		HubSecret:           names.SecretHub,
		Claims:              cluster.ClaimRules{MaxCustom: cluster.DefaultMaxCustomClaims},
		EvictionGracePeriod: time.Hour,
		Workers:             10,
		HubQPS:              defaultHubQPS,
		HubBurst:            defaultHubBurst,
		LeaderElect:         true,
		HealthAddress:       off,
		MetricsAddress:      off,
		PprofAddress:        off,
		ignored:             ignored{workSource: "kube"},
	}
}

// AddFlags binds the flags to c; their defaults are the values in c.
func (c *Config) AddFlags(f *pflag.FlagSet) {
	f.StringVar(&c.ClusterName, "spoke-cluster-name", c.ClusterName,
		"name of the cluster on the hub; empty takes the one of a former agent, else a random one")
	f.StringVar(&c.ClusterName, "cluster-name", c.ClusterName, "old name of --spoke-cluster-name")
	f.StringVar(&c.AgentID, "agent-id", c.AgentID,
		"name of the agent in its certificate and owner of what it applies; empty takes the one of a former agent, else a "+
			"random one (and the hash of the hub as owner)")
	f.StringVar(&c.Namespace, "namespace", c.Namespace,
		"namespace of the agent, for its Secrets and its lease; by default POD_NAMESPACE or the namespace of the pod")
	f.StringVar(&c.BootstrapKubeconfig, "bootstrap-kubeconfig", c.BootstrapKubeconfig,
		"path of the bootstrap kubeconfig; empty reads --bootstrap-kubeconfig-secret")
	f.StringVar(&c.BootstrapSecret, "bootstrap-kubeconfig-secret", c.BootstrapSecret,
		"Secret in the agent's namespace whose key kubeconfig is the bootstrap kubeconfig")
	f.StringVar(&c.HubSecret, "hub-kubeconfig-secret", c.HubSecret,
		"Secret in the agent's namespace with the hub credential; only the default is possible")
	f.StringVar(&c.Kubeconfig, "kubeconfig", c.Kubeconfig,
		"path of a kubeconfig of the cluster that the agent runs on; empty means the pod's own service account")
	f.StringVar(&c.SpokeKubeconfig, "spoke-kubeconfig", c.SpokeKubeconfig,
		"path of a kubeconfig of the managed cluster where that is not the one that the agent runs on")
	f.Int32Var(&c.CertExpirationSeconds, "client-cert-expiration-seconds", c.CertExpirationSeconds,
		"lifetime to ask for in certificate requests, 3600 or more; 0 leaves it to the signer")
	f.StringToStringVar(&c.ClusterAnnotations, "cluster-annotations", c.ClusterAnnotations,
		"annotations of a new ManagedCluster; only keys starting with agent.open-cluster-management.io are taken")
	f.StringSliceVar(&c.ExternalServerURLs, "spoke-external-server-urls", c.ExternalServerURLs,
		"https addresses of the cluster to tell the hub")
	f.IntVar(&c.Claims.MaxCustom, "max-custom-cluster-claims", c.Claims.MaxCustom,
		"number of claims that are reported besides the reserved ones")
	f.StringSliceVar(&c.Claims.ReservedSuffixes, "reserved-cluster-claim-suffixes", c.Claims.ReservedSuffixes,
		"endings of claim names that are reserved too")
	f.DurationVar(&c.EvictionGracePeriod, "appliedmanifestwork-eviction-grace-period", c.EvictionGracePeriod,
		"how long what was applied is kept when its ManifestWork is gone without a trace")
	f.IntVar(&c.Workers, "workload-agent-workers", c.Workers, "number of ManifestWorks that are worked on at once")
	c.addProcessFlags(f)
	c.addIgnoredFlags(f)
}

func (c *Config) addProcessFlags(f *pflag.FlagSet) {
	f.Float32Var(&c.SpokeQPS, "kube-api-qps", c.SpokeQPS,
		"requests per second to the managed cluster; 0 leaves it to priority and fairness of the API server")
	f.IntVar(&c.SpokeBurst, "kube-api-burst", c.SpokeBurst, "burst over --kube-api-qps")
	f.Float32Var(&c.HubQPS, "hub-kube-api-qps", c.HubQPS,
		"requests per second to the hub; 0 leaves it to priority and fairness of the API server")
	f.IntVar(&c.HubBurst, "hub-kube-api-burst", c.HubBurst, "burst over --hub-kube-api-qps")
	f.BoolVar(&c.LeaderElect, "leader-elect", c.LeaderElect, "wait for the leader lease before doing anything")
	f.StringVar(&c.HealthAddress, "health-probe-bind-address", c.HealthAddress,
		"address for /healthz and /readyz over http; 0 is off")
	f.StringVar(&c.MetricsAddress, "metrics-bind-address", c.MetricsAddress, "address for /metrics over http; 0 is off")
	f.StringVar(&c.PprofAddress, "pprof-bind-address", c.PprofAddress, "address for /debug/pprof over http; 0 is off")
	f.IntVarP(&c.Verbosity, "v", "v", c.Verbosity, "highest level of log lines that are written")
}

// addIgnoredFlags accepts flags that a Klusterlet passes and that have nothing to set here.
func (c *Config) addIgnoredFlags(f *pflag.FlagSet) {
	none := func(name, why string) { _ = f.MarkDeprecated(name, why) }
	f.StringVar(&c.ignored.hubKubeconfig, "hub-kubeconfig", "", "")
	f.StringVar(&c.ignored.hubKubeconfigDir, "hub-kubeconfig-dir", "", "")
	none("hub-kubeconfig", "the credential is used from its Secret, not from files")
	none("hub-kubeconfig-dir", "the credential is used from its Secret, not from files")
	f.DurationVar(&c.ignored.statusSyncInterval, "status-sync-interval", 0, "")
	none("status-sync-interval", "status follows watches, there is no interval")
	f.StringVar(&c.ignored.workSource, "workload-source-driver", c.ignored.workSource, "only kube is possible")
	f.StringVar(&c.ignored.workConfig, "workload-source-config", "", "")
	none("workload-source-config", "works are read with the agent's own hub credential")
}

// Validate checks the configuration without any request; it returns everything that is wrong at once.
func (c *Config) Validate() error {
	var wrong []error
	complain := func(flag, format string, args ...any) {
		wrong = append(wrong, fmt.Errorf("--%s: %s", flag, fmt.Sprintf(format, args...)))
	}
	if c.ClusterName != "" {
		for _, problem := range validation.IsDNS1123Label(c.ClusterName) {
			complain("spoke-cluster-name", "%q cannot be the name of a namespace on the hub: %s", c.ClusterName, problem)
		}
	}
	if strings.Contains(c.AgentID, ":") {
		complain("agent-id", "%q contains a colon, but is a part of a user name that is separated by colons", c.AgentID)
	}
	for _, problem := range validation.IsDNS1123Label(c.Namespace) {
		complain("namespace", "%q is no name of a namespace: %s", c.Namespace, problem)
	}
	if c.BootstrapKubeconfig == "" && c.BootstrapSecret == "" {
		complain("bootstrap-kubeconfig", "is empty, as --bootstrap-kubeconfig-secret is: one of them must lead to the hub")
	}
	if c.HubSecret != names.SecretHub {
		complain("hub-kubeconfig-secret", "only %q is possible, got %q", names.SecretHub, c.HubSecret)
	}
	if s := c.CertExpirationSeconds; s != 0 && s < minCertSeconds {
		complain("client-cert-expiration-seconds", "must be 0 or at least %d, got %d", minCertSeconds, s)
	}
	for _, address := range c.ExternalServerURLs {
		if u, err := url.Parse(address); err != nil || u.Scheme != "https" || u.Host == "" {
			complain("spoke-external-server-urls", "%q is no https address", address)
		}
	}
	if c.ignored.workSource != "kube" {
		complain("workload-source-driver", "only kube is possible, got %q", c.ignored.workSource)
	}
	return errors.Join(append(wrong, c.validateNumbers()...)...)
}

func (c *Config) validateNumbers() []error {
	var wrong []error
	for _, number := range []struct {
		flag       string
		value, min float64
	}{
		{"max-custom-cluster-claims", float64(c.Claims.MaxCustom), 0},
		{"appliedmanifestwork-eviction-grace-period", float64(c.EvictionGracePeriod), 0},
		{"workload-agent-workers", float64(c.Workers), 1},
		{"kube-api-qps", float64(c.SpokeQPS), 0},
		{"kube-api-burst", float64(c.SpokeBurst), 0},
		{"hub-kube-api-qps", float64(c.HubQPS), 0},
		{"hub-kube-api-burst", float64(c.HubBurst), 0},
	} {
		if math.IsNaN(number.value) || number.value < number.min {
			wrong = append(wrong, fmt.Errorf("--%s: must not be below %v", number.flag, number.min))
		}
	}
	return wrong
}
