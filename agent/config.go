package agent

import (
	"net/http"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/spokelet/spokelet/agent/bootstrap"
	"github.com/spokelet/spokelet/agent/cluster"
	"github.com/spokelet/spokelet/agent/health"
	"github.com/spokelet/spokelet/agent/work/feedback"
	"github.com/spokelet/spokelet/agent/work/missing"
	"github.com/spokelet/spokelet/agent/work/offline"
	"github.com/spokelet/spokelet/agent/work/watch"
	"github.com/spokelet/spokelet/internal/command"
	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/internal/version"
)

// off is the address of an endpoint that is not served.
const off = "0"

// Config is everything that can be set. DefaultConfig returns the defaults, AddFlags binds the flags of OCM to it.
type Config struct {
	// Duties are the parts of the agent that the process runs.
	Duties Duties
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
	// BootstrapKubeconfigs are the bootstrap kubeconfigs of several hubs in the order of preference, two or more, where
	// Gates.MultipleHubs is on: a path, or "secret:" and the name of a Secret in Namespace with the key kubeconfig.
	BootstrapKubeconfigs []string
	// HubTimeout is how long a hub of several may be silent before another hub is selected.
	HubTimeout time.Duration
	// HubSecret is the Secret in Namespace that keeps the agent's hub credential.
	HubSecret string
	// HubKubeconfigDir is the directory with the content of HubSecret as files; empty means none. Without
	// Duties.Registration the agent reads it, and another process writes it.
	HubKubeconfigDir string
	// HubKubeconfig is the path of the kubeconfig in HubKubeconfigDir; empty means the file kubeconfig there.
	HubKubeconfig string
	// WorkSource is where works come from: "kube".
	WorkSource string
	// WorkSourceConfig is the path of the hub kubeconfig without Duties.Registration; empty means the one in
	// HubKubeconfigDir.
	WorkSourceConfig string
	// UnauthorizedAfter is how long the hub may answer nothing but 401 before the agent joins again.
	UnauthorizedAfter time.Duration
	// Kubeconfig is the path of a kubeconfig of the cluster that the agent runs on; empty means the pod's own.
	Kubeconfig string
	// SpokeKubeconfig is the path of a kubeconfig of the managed cluster where that is another cluster (hosted mode). When
	// the file changes, it is read again.
	SpokeKubeconfig string
	// WorkServiceAccount is the ServiceAccount of the managed cluster under which works are applied: a name in Namespace,
	// or namespace/name. Empty means the agent's own identity.
	WorkServiceAccount string
	// HostedAddonNamespaces are the namespaces of the cluster that the agent runs on in which it may serve hosted add-ons;
	// empty means all. It is for hosted mode.
	HostedAddonNamespaces []string

	// CertExpirationSeconds is the requested lifetime of the certificate; zero leaves it to the signer.
	CertExpirationSeconds int32
	// ClusterAnnotations are set when the ManagedCluster is created; see join.ClusterOptions.
	ClusterAnnotations map[string]string
	// ExternalServerURLs are the https addresses of the cluster in its ManagedCluster.
	ExternalServerURLs []string
	// ReportHostingCluster keeps the reserved ClusterClaim on the cluster of the agent at HostingClusterName, empty for no
	// claim.
	ReportHostingCluster bool
	HostingClusterName   string
	// RegistrationAuth is how the cluster gets its credential: "csr", or empty for the same.
	RegistrationAuth string
	// AddonDriver is how add-ons get credentials for the API server of the hub: "csr", "token", or empty for csr.
	AddonDriver string
	// AddonTokenExpirationSeconds is the lifetime of the tokens of add-ons.
	AddonTokenExpirationSeconds int64
	// Gates are the feature gates.
	Gates Gates
	// Period is --cluster-healthcheck-period.
	Period time.Duration
	// Claims selects the claims that are reported.
	Claims cluster.ClaimRules
	// EvictionGracePeriod is how long an AppliedManifestWork without a ManifestWork is kept.
	EvictionGracePeriod time.Duration
	// EvictMissingWorks is what happens to the objects of ManifestWorks of which many are missing on the hub at once: a
	// missing.Policy.
	EvictMissingWorks string
	// Workers is the number of ManifestWorks that are worked on at once.
	Workers int
	// MaxWatches is how many watches of the objects of works there are at most, WorkRelist how long one is trusted before
	// it lists again.
	MaxWatches int
	WorkRelist time.Duration
	// MaxJSONRawLength is the longest raw JSON value of feedback, in bytes, where the gate for them is on.
	MaxJSONRawLength int

	// WorkCacheDir is the directory for copies of the ManifestWorks, by which the agent keeps them when it starts
	// while the hub is away; empty keeps none.
	WorkCacheDir string
	// WorkCacheMiB is how much the copies may take there, in MiB.
	WorkCacheMiB int

	// SpokeQPS and SpokeBurst limit requests to the spoke; zero leaves that to priority and fairness of the server.
	SpokeQPS   float32
	SpokeBurst int
	// HubQPS and HubBurst limit requests to the hub; zero leaves that to priority and fairness of the server.
	HubQPS   float32
	HubBurst int

	// Election is the election by the Leases of the Duties in Namespace.
	command.Election
	// HealthAddress serves /healthz and /readyz over http; "0" is off.
	HealthAddress string
	// HealthPort serves the same over https, with a certificate made at the start; 0 is off.
	HealthPort int
	// Listen is the address for that in the place of HealthPort; "0" is off, empty leaves it to HealthPort.
	Listen string
	// TLS restricts how health is served over https.
	TLS command.TLS
	// MetricsAddress serves /metrics over http; "0" is off.
	MetricsAddress string
	// PprofAddress serves /debug/pprof; "0" is off.
	PprofAddress string
	// GiveBackMemory returns free heap to the operating system after the start and after each burst of work.
	GiveBackMemory bool
	// Verbosity is the highest level of log lines that are written.
	Verbosity int

	// WrapTransport, unless nil, is put around every transport of the agent: to the hub with either credential, to the
	// cluster that the agent runs on (its leader election too) and to the managed cluster. It is for programs that embed
	// the agent, for tracing for example; it is called several times, and what it returns must be safe for concurrent use.
	WrapTransport func(http.RoundTripper) http.RoundTripper

	// PollFiles reads the files of kubeconfigs and credentials now and then, and does not watch them. It is for programs
	// that embed the agent where the file system does not tell of changes, as that of a network may not.
	PollFiles bool

	// foreign collects the flags and feature gates that were given and have no effect.
	foreign command.Foreign
}

// The default rate limit of requests to the hub: a hub has thousands of agents, and 200 works that arrive at once cost
// an agent 400 requests.
const (
	defaultHubQPS   = 200
	defaultHubBurst = 500
)

// Defaults of OCM (docs/reference/registration.md, "Timers and bounds") and our own.
const (
	defaultPeriod            = time.Minute
	defaultHubTimeout        = 600 * time.Second
	defaultTokenSeconds      = 31536000
	defaultUnauthorizedAfter = 3 * time.Minute
)

// DefaultConfig returns the defaults, with the namespace of the pod if there is one.
func DefaultConfig() Config {
	return Config{
		Namespace:           command.Namespace(names.NamespaceAgent),
		BootstrapSecret:     names.SecretBootstrap,
		HubSecret:           names.SecretHub,
		Claims:              cluster.ClaimRules{MaxCustom: cluster.DefaultMaxCustomClaims, AgentVersion: version.String()},
		EvictionGracePeriod: time.Hour,
		EvictMissingWorks:   string(missing.Hold),
		Workers:             10,
		MaxWatches:          watch.DefaultMaxWatches,
		WorkRelist:          watch.DefaultRelist,
		MaxJSONRawLength:    feedback.DefaultMaxRawLength,
		WorkCacheMiB:        offline.DefaultMaxBytes >> mebi,
		HubQPS:              defaultHubQPS,
		HubBurst:            defaultHubBurst,
		HealthAddress:       off,
		MetricsAddress:      off,
		PprofAddress:        off,
		GiveBackMemory:      true,
		WorkSource:          driverKube,
		Duties:              both(),
		Election:            defaultElection(),

		HubTimeout: defaultHubTimeout, UnauthorizedAfter: defaultUnauthorizedAfter, Period: defaultPeriod,
		AddonTokenExpirationSeconds: defaultTokenSeconds, Gates: DefaultGates(),
	}
}

// defaultElection returns the times of OCM's agents.
func defaultElection() command.Election {
	return command.Election{
		LeaderElect: true, LeaseDuration: 137 * time.Second, RenewDeadline: 107 * time.Second, RetryPeriod: 26 * time.Second,
	}
}

// secretEntry starts an entry of --bootstrap-kubeconfigs that names a Secret.
const secretEntry = "secret:"

// sources returns the bootstrap kubeconfigs in the order of preference.
func (c *Config) sources() []bootstrap.Source {
	if !c.Gates.MultipleHubs {
		return []bootstrap.Source{c.source(c.BootstrapKubeconfig)}
	}
	list := make([]bootstrap.Source, 0, len(c.BootstrapKubeconfigs))
	for _, entry := range c.BootstrapKubeconfigs {
		list = append(list, c.source(entry))
	}
	return list
}

func (c *Config) source(entry string) bootstrap.Source {
	source := bootstrap.Source{Secret: types.NamespacedName{Namespace: c.Namespace, Name: c.BootstrapSecret}}
	if name, ok := strings.CutPrefix(entry, secretEntry); ok {
		source.Secret.Name = name
		return source
	}
	source.File = entry
	return source
}

// ownSecrets returns the names of the Secrets with which the agent joins and is known to its hub. Agents of other
// clusters in other namespaces have the default names.
func (c *Config) ownSecrets() []string {
	list := []string{names.SecretBootstrap, names.SecretHub, c.HubSecret}
	for _, source := range c.sources() {
		list = append(list, source.Secret.Name)
	}
	return list
}

// healthTLS returns how health is served over https.
func (c *Config) healthTLS() health.TLSOptions {
	return health.TLSOptions{
		Address: c.Listen, Port: c.HealthPort, TLS: c.TLS,
	}
}

// Duties are the parts of the agent that a process runs: one or both.
type Duties struct {
	// Registration joins the cluster, keeps its credential, reports its status and serves its add-ons.
	Registration bool
	// Works applies ManifestWorks. Without Registration it uses the credential that a registration agent keeps.
	Works bool
}

// both are the duties of a process that is the whole agent.
func both() Duties { return Duties{Registration: true, Works: true} }

// driverKube is the driver that reads works from the API server of the hub.
const driverKube = "kube"

// mebi is the shift that turns MiB into bytes.
const mebi = 20

// workAccount is the ServiceAccount in --work-service-account; empty means the agent's own identity.
func (c *Config) workAccount() types.NamespacedName {
	namespace, name, found := strings.Cut(c.WorkServiceAccount, "/")
	if !found {
		namespace, name = c.Namespace, c.WorkServiceAccount
	}
	return types.NamespacedName{Namespace: namespace, Name: name}
}

// hostingClaim returns the value of the claim on the cluster of the agent, empty for none; nil where it is left alone.
// cluster is the name of the managed cluster.
func (c *Config) hostingClaim(cluster string) *string {
	value := c.HostingClusterName
	if value == "" && c.SpokeKubeconfig == "" {
		value = cluster
	}
	if !c.ReportHostingCluster {
		return nil
	}
	return &value
}
