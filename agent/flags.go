package agent

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/spokelet/spokelet/internal/command"
	"github.com/spokelet/spokelet/internal/token"
)

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
		"Secret in the agent's namespace that keeps the hub credential")
	f.StringVar(&c.HubKubeconfigDir, "hub-kubeconfig-dir", c.HubKubeconfigDir,
		"directory that shows the content of --hub-kubeconfig-secret as files; empty means none; an agent that only does "+
			"works reads it and writes nothing")
	f.StringVar(&c.HubKubeconfig, "hub-kubeconfig", c.HubKubeconfig,
		"path of the hub kubeconfig: the file kubeconfig in --hub-kubeconfig-dir")
	f.StringVar(&c.Kubeconfig, "kubeconfig", c.Kubeconfig,
		"path of a kubeconfig of the cluster that the agent runs on; empty means the pod's own service account")
	f.StringVar(&c.SpokeKubeconfig, "spoke-kubeconfig", c.SpokeKubeconfig,
		"path of a kubeconfig of the managed cluster where that is not the one that the agent runs on")
	f.StringSliceVar(&c.HostedAddonNamespaces, "hosted-addon-namespaces", c.HostedAddonNamespaces,
		"namespaces of the cluster that the agent runs on in which it may serve hosted add-ons, with --spoke-kubeconfig; "+
			"empty means all, which needs rights in all")
	f.BoolVar(&c.ReportHostingCluster, "report-hosting-cluster", c.ReportHostingCluster,
		"report the cluster on which this agent runs by ClusterClaim hosting-cluster.open-cluster-management.io, so that "+
			"the hub finds it for hosted add-ons; the agent needs get, create, update and delete on that claim")
	f.StringVar(&c.HostingClusterName, "hosting-cluster-name", c.HostingClusterName,
		"name on the hub of the cluster on which this agent runs, for --report-hosting-cluster; empty means "+
			"--spoke-cluster-name outside of hosted mode, and no claim in it")
	f.StringVar(&c.RegistrationAuth, "registration-auth", c.RegistrationAuth,
		"how the cluster gets its credential; only csr is supported")
	f.Int32Var(&c.CertExpirationSeconds, "client-cert-expiration-seconds", c.CertExpirationSeconds,
		"lifetime to ask for in certificate requests, 3600 or more; 0 leaves it to the signer")
	f.StringToStringVar(&c.ClusterAnnotations, "cluster-annotations", c.ClusterAnnotations,
		"annotations of a new ManagedCluster; only keys starting with agent.open-cluster-management.io are taken")
	f.StringSliceVar(&c.ExternalServerURLs, "spoke-external-server-urls", c.ExternalServerURLs,
		"https addresses of the cluster, for its ManagedCluster")
	f.IntVar(&c.Claims.MaxCustom, "max-custom-cluster-claims", c.Claims.MaxCustom,
		"number of claims that are reported besides the reserved ones")
	f.StringSliceVar(&c.Claims.ReservedSuffixes, "reserved-cluster-claim-suffixes", c.Claims.ReservedSuffixes,
		"endings of claim names that are reserved too")
	c.addWorkFlags(f)
	c.addHubFlags(f)
	c.addProcessFlags(f)
	c.addServingFlags(f)
	c.addForeignFlags(f)
}

// addWorkFlags binds the flags of works.
func (c *Config) addWorkFlags(f *pflag.FlagSet) {
	f.DurationVar(&c.EvictionGracePeriod, "appliedmanifestwork-eviction-grace-period", c.EvictionGracePeriod,
		"how long what was applied is kept when its ManifestWork is gone without a trace")
	f.StringVar(&c.EvictMissingWorks, "evict-missing-works", c.EvictMissingWorks,
		"what happens when more than three ManifestWorks, or more than a tenth of all, are gone without a trace at once: "+
			"hold keeps what was applied until a person confirms on the hub that it may go, grace deletes it like that of a "+
			"single one")
	f.IntVar(&c.Workers, "workload-agent-workers", c.Workers, "number of ManifestWorks that are worked on at once")
	f.IntVar(&c.MaxWatches, "work-max-watches", c.MaxWatches,
		"number of watches of objects of ManifestWorks, each of a resource in a namespace; where that is too few, resources "+
			"in many namespaces are watched in all of them; objects beyond are looked at every few minutes")
	f.DurationVar(&c.WorkRelist, "work-relist-period", c.WorkRelist,
		"how long a watch of objects of ManifestWorks is trusted before it lists again, lengthened by up to a half")
	f.IntVar(&c.MaxJSONRawLength, "max-json-raw-length", c.MaxJSONRawLength,
		"longest raw JSON value of feedback, in bytes, with --feature-gates=RawFeedbackJsonString=true; the API takes no "+
			"more than 1024 characters")
	f.StringVar(&c.WorkCacheDir, "work-cache-dir", c.WorkCacheDir,
		"directory for encrypted copies of the ManifestWorks, by which the agent looks after them when it starts while the "+
			"hub is away; it must survive a restart; empty keeps none")
	f.IntVar(&c.WorkCacheMiB, "work-cache-size", c.WorkCacheMiB, "how much --work-cache-dir may take, in MiB")
}

// addHubFlags binds the flags of several hubs, of a hub that rejects the credential, of add-ons and feature gates.
func (c *Config) addHubFlags(f *pflag.FlagSet) {
	f.StringArrayVar(&c.BootstrapKubeconfigs, "bootstrap-kubeconfigs", c.BootstrapKubeconfigs,
		"path of a bootstrap kubeconfig, or secret: and the name of a Secret in the agent's namespace; repeated for two or "+
			"more hubs in the order of preference, with --feature-gates=MultipleHubs=true")
	f.Var(&seconds{&c.HubTimeout, minHubTimeout}, "hub-connection-timeout-seconds",
		"how long a hub of --bootstrap-kubeconfigs may be silent before the hubs are chosen again, 180 or more")
	f.DurationVar(&c.UnauthorizedAfter, "hub-unauthorized-timeout", c.UnauthorizedAfter,
		"how long the hub may answer nothing but 401 to the stored credential before the agent joins again with the "+
			"bootstrap kubeconfig")
	f.StringVar(&c.AddonDriver, "addon-kubeclient-registration-auth", c.AddonDriver,
		"how add-ons get credentials for the API server of the hub: csr (also when empty) or token")
	f.Int64Var(&c.AddonTokenExpirationSeconds, "addon-token-expiration-seconds", c.AddonTokenExpirationSeconds,
		"lifetime of the tokens of add-ons, 600 or more")
	f.DurationVar(&c.Period, "cluster-healthcheck-period", c.Period,
		"upper bound between two looks at the health of the cluster; it is watched, so nothing waits for it")
	gates := &command.Gates{Known: c.Gates.known(), Notes: &c.foreign}
	f.Var(gates, "feature-gates", "feature gates as name=true or name=false, separated by commas; known are "+
		strings.Join(gates.Names(), ", "))
}

func (c *Config) addProcessFlags(f *pflag.FlagSet) {
	f.StringVar(&c.WorkServiceAccount, "work-service-account", c.WorkServiceAccount,
		"ServiceAccount of the managed cluster under which ManifestWorks are applied, as a name in --namespace or as "+
			"namespace/name; the agent needs create on its token; empty means the agent's own identity")
	command.AddRequests(f, "", "the managed cluster", command.Requests{QPS: &c.SpokeQPS, Burst: &c.SpokeBurst})
	command.AddRequests(f, "hub-", "the hub", command.Requests{QPS: &c.HubQPS, Burst: &c.HubBurst})
	command.AddEndpoints(f, &c.MetricsAddress, &c.HealthAddress)
	f.StringVar(&c.PprofAddress, "pprof-bind-address", c.PprofAddress, "address for /debug/pprof over http; 0 is off")
	command.AddGiveBackMemory(f, &c.GiveBackMemory)
	command.AddVerbosity(f, &c.Verbosity)
}

// addServingFlags binds the flags of leader election, and of health over HTTPS.
func (c *Config) addServingFlags(f *pflag.FlagSet) {
	c.Election.AddFlags(f)
	f.IntVar(&c.HealthPort, "health-port", c.HealthPort,
		"port for /healthz and /readyz over https, with a certificate made at the start; 0 is off, and for registration "+
			"agent and work agent the default, 8443")
	f.StringVar(&c.Listen, "listen", c.Listen, "address for the same, in the place of --health-port; 0 is off")
	c.TLS.AddFlags(f)
	f.StringVar(&c.WorkSource, "workload-source-driver", c.WorkSource, "where works come from; only kube is supported")
	f.StringVar(&c.WorkSourceConfig, flagWorkSourceConfig, c.WorkSourceConfig,
		"path of the hub kubeconfig for an agent that only does works; empty means the file kubeconfig in "+
			"--hub-kubeconfig-dir")
}

// seconds is a flag that is given in whole seconds, at least min.
type seconds struct {
	value *time.Duration
	min   time.Duration
}

// String implements pflag.Value.
func (s *seconds) String() string {
	if s.value == nil {
		return ""
	}
	return strconv.FormatInt(int64(*s.value/time.Second), 10)
}

// Set implements pflag.Value.
func (s *seconds) Set(text string) error {
	n, err := strconv.ParseInt(text, 10, 32)
	if err != nil {
		return fmt.Errorf("%q is no number of seconds", text)
	}
	value := time.Duration(n) * time.Second
	if value < s.min {
		return fmt.Errorf("must be at least %d, got %d", s.min/time.Second, n)
	}
	*s.value = value
	return nil
}

// Type implements pflag.Value.
func (*seconds) Type() string { return "int" }

// addForeignFlags accepts the flags of OCM's agents that have nothing to set here: those that a Klusterlet passes, and
// those that its programs have from their libraries.
func (c *Config) addForeignFlags(f *pflag.FlagSet) {
	n := &c.foreign
	n.Accept(f, "a kubeconfig that changes is read again, the process goes on", "terminate-on-files")
	n.Accept(f, "status follows watches, there is no interval", "status-sync-interval")
	n.Accept(f, "every applied object is watched, whatever feedbackScrapeType says", "max-feedback-watch")
	n.Accept(f, "it is for other drivers than kube and csr", "hub-cluster-arn", "managed-cluster-arn",
		"managed-cluster-role-suffix", "grpc-bootstrap-config", "grpc-config", "cloudevents-client-id",
		"cloudevents-client-codecs")
	n.Accept(f, "it is not supported", "cluster-labels")
	n.Accept(f, "the name of the cluster is --spoke-cluster-name, or that of a former agent", "cluster-name-provider")
	n.Accept(f, "there is no configuration file, everything is a flag", "config")
	n.Accept(f, "the verbosity is the same everywhere; see -v", "vmodule")
	n.Accept(f, "every line is written at once", "log-flush-frequency")
	n.Accept(f, "a line is key=value pairs, and is written at once", "logging-format", "log-json-info-buffer-size",
		"log-text-info-buffer-size")
	n.AcceptBool(f, "every line goes to the standard error", "log-json-split-stream", "log-text-split-stream")
}

// noteUnused notes a flag that has no effect together with the duties of the process.
func (c *Config) noteUnused(flags *pflag.FlagSet) {
	if c.Duties.Registration && flags.Changed(flagWorkSourceConfig) {
		c.foreign.Note("--"+flagWorkSourceConfig, "works are read with the agent's own hub credential")
	}
}

// noteDrivers takes the default where a driver is not known. One that OCM has and we do not stays, and is refused: a
// cluster or its works would come another way than was asked for.
func (c *Config) noteDrivers() {
	c.foreign.Driver("--registration-auth", &c.RegistrationAuth, driverCSR, "awsirsa", "grpc", "")
	c.foreign.Driver("--addon-kubeclient-registration-auth", &c.AddonDriver, driverCSR, token.Driver, "")
	c.foreign.Driver("--workload-source-driver", &c.WorkSource, driverKube, "mqtt", "grpc")
}

// flagWorkSourceConfig is only used by an agent that only does works.
const flagWorkSourceConfig = "workload-source-config"
