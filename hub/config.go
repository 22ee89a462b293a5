package hub

import (
	"fmt"
	"math"
	"net/http"
	"strings"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/spokelet/spokelet/csr/approve"
	"github.com/spokelet/spokelet/hub/addon"
	"github.com/spokelet/spokelet/hub/deploy/hosting"
	"github.com/spokelet/spokelet/hub/webhook"
	"github.com/spokelet/spokelet/internal/command"
	"github.com/spokelet/spokelet/internal/hubprocess"
	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/internal/objectwatch"
)

// defaultWebhookPort is the port of the conversion webhook in OCM.
const defaultWebhookPort = 9443

// Config is the configuration of the hub manager: a field for each flag, Agents and WrapTransport. DefaultConfig
// returns the defaults, and AddFlags binds the flags to it.
type Config struct {
	// Kubeconfig is the path of a kubeconfig of the hub; empty means the pod's own service account.
	Kubeconfig string
	// Namespace is the namespace of the leader lease, and the default namespace of signing CAs.
	Namespace string

	// Uninstall deletes everything from the hub that only the hub manager needs, instead of running it.
	Uninstall bool
	// InstallCRDs applies the CustomResourceDefinitions at the start.
	InstallCRDs bool
	// Placement makes the hub manager schedule Placements; off where another placement controller runs.
	Placement bool
	// RemovalLimitPercent and RemovalLimitClusters are the share of the clusters of an add-on, in percent, and the number
	// of clusters that may lose it at once without an edit that explains it; a removal from more is held until a person
	// confirms it. A share of 0 holds nothing.
	RemovalLimitPercent  int
	RemovalLimitClusters int
	// ClusterLabels are put on the namespace, the roles and the bindings of each cluster.
	ClusterLabels map[string]string
	// ConfigPrecedence says which of several configurations of one kind counts.
	ConfigPrecedence addon.Precedence
	// WorkTTL makes the hub manager delete complete ManifestWorks when their ttlSecondsAfterFinished is over.
	WorkTTL bool
	// AutoApprovedCSRUsers are the users whose requests for a first credential of a cluster are approved without a person;
	// exact names. Such a request also accepts a new cluster, once.
	AutoApprovedCSRUsers []string
	// AutoApproveJoinedClusters extends that to clusters that have joined before: each of the users can then take over the
	// identity of every such cluster.
	AutoApproveJoinedClusters bool
	// MaxAddOnCertificateLifetime is the maximum lifetime of certificates of add-ons; zero leaves it to the signer.
	MaxAddOnCertificateLifetime time.Duration
	// TrustAsOCM makes the hub manager trust as much as OCM's does, where Spokelet trusts less and an installation of OCM
	// may depend on it (docs/security.md, "A hub that comes from OCM").
	TrustAsOCM bool
	// RequireHostingConsent makes a cluster host add-ons of others only if its annotation addon.spokelet.io/hosts lists
	// them. Without RequirePolicies that is always so, because nothing checks who names a hosting cluster.
	RequireHostingConsent bool
	// RemoveUnacceptedAfter is how long a ManagedCluster stays that was never accepted and whose certificate requests
	// nobody approved; zero, or TrustAsOCM, means for ever.
	RemoveUnacceptedAfter time.Duration
	// AutoApproveBoundBootstrap does the same as AutoApprovedCSRUsers for every bootstrap credential that is bound to the
	// cluster of the request, including clusters that have joined before.
	AutoApproveBoundBootstrap bool

	// WebhookBindAddress and WebhookPort are the listen address of the webhook.
	WebhookBindAddress string
	WebhookPort        int
	// WebhookCertDir contains tls.crt and tls.key of the webhook; WebhookCAFile is its CA for the API server. If they do
	// not exist, the hub manager creates both, see WebhookSecret.
	WebhookCertDir string
	WebhookCAFile  string
	// WebhookSecret is the name of the Secret in Namespace with the certificate that the hub manager creates if it
	// installs the definitions and none is provided; empty means that it creates none.
	WebhookSecret string
	// WebhookURL or WebhookService, as namespace/name, is the address of the webhook for the API server. With neither, the
	// CustomResourceDefinitions are installed without conversion, and the hub manager is not ready until another webhook
	// converts.
	WebhookURL     string
	WebhookService string
	// TLS configures TLS of the webhook.
	TLS command.TLS
	// WebhookClientCA is the path of the authorities of the clients of the webhook; empty asks for no certificate. API
	// servers of Kubernetes present none for conversions, so this needs a proxy that does.
	WebhookClientCA string
	// WorkAdmission makes the webhook serve the check of ManifestWorks, which an administrator announces to the API
	// server.
	WorkAdmission bool
	// ManifestLimit is the limit for the manifests of one ManifestWork together, in bytes.
	ManifestLimit int

	// RequirePolicies makes the hub manager exit at its start when the policies of manifests/hub/policies are not in
	// force.
	RequirePolicies bool

	// Election is the leader election, by a Lease in Namespace.
	command.Election
	// MetricsAddress serves /metrics over http; "0" is off.
	MetricsAddress string
	// HealthAddress serves /healthz and /readyz over http; "0" is off.
	HealthAddress string
	// QPS and Burst limit requests to the hub; QPS zero leaves that to API Priority and Fairness.
	QPS   float32
	Burst int
	// WatchedConfigs is how many configurations of other kinds than AddOnTemplate and AddOnDeploymentConfig are watched.
	WatchedConfigs int
	// Workers is how many objects each reconciler reconciles at the same time.
	Workers int
	// GiveBackMemory returns free heap to the operating system after the start and after each burst of work.
	GiveBackMemory bool
	// Verbosity is the highest level of log lines.
	Verbosity int

	// Agents are the agents of add-ons that are made of Go code and not of templates. They come before templates. It is
	// for programs that embed the hub manager.
	Agents addon.Registry
	// WrapTransport, unless nil, is put around every transport of the hub manager. It is for programs that embed it, for
	// tracing for example; it is called several times, and what it returns must be safe for concurrent use.
	WrapTransport func(http.RoundTripper) http.RoundTripper

	foreign foreignFlags
}

// DefaultConfig returns the defaults, with the namespace of the pod if there is one.
func DefaultConfig() Config {
	return Config{
		Namespace: command.Namespace(names.NamespaceHub),
		Placement: true,

		RemovalLimitPercent: 25, RemovalLimitClusters: 10,

		RemoveUnacceptedAfter: 24 * time.Hour,

		ConfigPrecedence: addon.LastCounts,

		WorkTTL:         true,
		WebhookPort:     defaultWebhookPort,
		WebhookSecret:   names.SecretWebhook,
		WorkAdmission:   true,
		ManifestLimit:   webhook.DefaultManifestLimit,
		RequirePolicies: true,
		Election: command.Election{
			LeaderElect: true, LeaseDuration: leaseDuration, RenewDeadline: renewDeadline, RetryPeriod: retryPeriod,
		},
		MetricsAddress: hubprocess.Off,
		HealthAddress:  ":8081",
		WatchedConfigs: objectwatch.DefaultLimit,
		Workers:        10,
		GiveBackMemory: true,
	}
}

// AddFlags binds the flags to c; their defaults are the values in c.
func (c *Config) AddFlags(f *pflag.FlagSet) {
	f.StringVar(&c.Kubeconfig, "kubeconfig", c.Kubeconfig,
		"path of a kubeconfig of the hub; empty means the pod's own service account")
	f.StringVar(&c.Namespace, "namespace", c.Namespace,
		"namespace of the hub manager, for its lease; by default POD_NAMESPACE or the namespace of the pod")
	f.BoolVar(&c.Uninstall, "uninstall", c.Uninstall,
		"delete the hub manager of --namespace, its webhooks, policies and roles, print what was done, and exit; clusters, "+
			"add-ons and works stay (docs/operations/move-from-ocm.md)")
	f.BoolVar(&c.InstallCRDs, "install-crds", c.InstallCRDs, "apply the CustomResourceDefinitions at the start")
	f.BoolVar(&c.Placement, "placement", c.Placement,
		"decide Placements; turn it off where another placement controller runs")
	f.IntVar(&c.RemovalLimitPercent, "removal-limit-percent", c.RemovalLimitPercent,
		"share of the clusters of an add-on that may lose it within 15 minutes without an edit of a Placement, a "+
			"ClusterManagementAddOn or a ManagedClusterSet that explains it; a removal from more is held until a person "+
			"confirms it; 0 holds nothing")
	f.IntVar(&c.RemovalLimitClusters, "removal-limit-clusters", c.RemovalLimitClusters,
		"number of clusters up to which --removal-limit-percent holds nothing")
	command.AddConfigPrecedence(f, (*string)(&c.ConfigPrecedence))
	f.BoolVar(&c.WorkTTL, "work-ttl", c.WorkTTL,
		"delete ManifestWorks that are complete when their ttlSecondsAfterFinished is over")
	c.addTrustFlags(f)
	f.StringVar(&c.WebhookBindAddress, "webhook-bind-address", c.WebhookBindAddress,
		"address on which the conversion webhook listens; empty means all")
	f.IntVar(&c.WebhookPort, "webhook-port", c.WebhookPort, "port on which the conversion webhook listens")
	f.StringVar(&c.WebhookCertDir, "webhook-cert-dir", c.WebhookCertDir,
		"directory with tls.crt and tls.key of the webhook; where they are missing, --webhook-secret is used")
	f.StringVar(&c.WebhookSecret, "webhook-secret", c.WebhookSecret,
		"Secret in --namespace with the certificate of the webhook that the hub manager makes and renews itself, with "+
			"--install-crds and where --webhook-cert-dir contains none; empty makes none")
	f.StringVar(&c.WebhookURL, "webhook-url", c.WebhookURL,
		"https address at which the API server finds the conversion webhook, for --install-crds")
	f.StringVar(&c.WebhookService, "webhook-service", c.WebhookService,
		"namespace/name of the service at which the API server finds the conversion webhook, for --install-crds")
	f.StringVar(&c.WebhookCAFile, "webhook-ca-file", c.WebhookCAFile,
		"certificate that the API server is to trust for the conversion webhook, for --install-crds")
	f.StringVar(&c.WebhookClientCA, "webhook-client-ca", c.WebhookClientCA,
		"file with the authorities of clients of the webhook: it then refuses requests without a client certificate of "+
			"theirs; API servers of Kubernetes present none for conversions, so this needs a proxy that does; empty asks "+
			"for none")
	c.TLS.AddFlags(f)
	f.BoolVar(&c.WorkAdmission, "work-admission", c.WorkAdmission,
		"have the webhook serve the check of ManifestWorks, for manifests/hub/work-webhook")
	f.IntVar(&c.ManifestLimit, "manifest-limit", c.ManifestLimit,
		"bytes that the manifests of one ManifestWork may have together, for --work-admission")
	f.BoolVar(&c.RequirePolicies, "require-policies", c.RequirePolicies,
		"end at the start when the admission policies of the hub are not in force; false only warns")
	c.Election.AddFlags(f)
	c.addProcessFlags(f)
	c.addForeignFlags(f)
}

// addProcessFlags binds the flags about the process: its endpoints, requests, memory and log.
func (c *Config) addProcessFlags(f *pflag.FlagSet) {
	command.AddEndpoints(f, &c.MetricsAddress, &c.HealthAddress)
	command.AddRequests(f, "", "the hub", command.Requests{QPS: &c.QPS, Burst: &c.Burst})
	command.AddWatchedConfigs(f, "AddOnTemplate and AddOnDeploymentConfig", &c.WatchedConfigs)
	f.IntVar(&c.Workers, "workers", c.Workers, "number of objects that each reconciler works on at once")
	command.AddGiveBackMemory(f, &c.GiveBackMemory)
	command.AddVerbosity(f, &c.Verbosity)
}

// addTrustFlags binds the flags about whom the hub manager trusts, and for how long.
func (c *Config) addTrustFlags(f *pflag.FlagSet) {
	f.StringSliceVar(&c.AutoApprovedCSRUsers, "auto-approved-csr-users", c.AutoApprovedCSRUsers,
		"users whose certificate requests for new clusters are approved, which also accepts the cluster, once; "+
			"exact names, may be repeated")
	f.BoolVar(&c.AutoApproveJoinedClusters, "auto-approve-joined-clusters", c.AutoApproveJoinedClusters,
		"extend --auto-approved-csr-users to clusters that have joined before; everybody with the credential of such a "+
			"user can then take over the identity of any cluster")
	f.BoolVar(&c.AutoApproveBoundBootstrap, "auto-approve-bound-bootstrap", c.AutoApproveBoundBootstrap,
		"approve, and accept the cluster once, where a bootstrap credential is bound to the cluster that it asks for")
	f.DurationVar(&c.RemoveUnacceptedAfter, "remove-unaccepted-clusters-after", c.RemoveUnacceptedAfter,
		"time after which a ManagedCluster is removed that was never accepted and whose certificate requests no user "+
			"approved, unless an administrator prepared it; 0 is never")
	f.DurationVar(&c.MaxAddOnCertificateLifetime, "max-addon-certificate-lifetime", c.MaxAddOnCertificateLifetime,
		"longest lifetime of certificates of add-ons: a request for more, or for the default of the signer, is not "+
			"approved, and the hub manager signs for no more; 0 approves up to a year, and the default of the signer")
	f.BoolVar(&c.TrustAsOCM, "trust-as-ocm", c.TrustAsOCM,
		"trust as much as the hub of OCM does, for an installation that comes from OCM and depends on it; "+
			"docs/security.md lists what that allows")
	f.BoolVar(&c.RequireHostingConsent, "require-hosting-consent", c.RequireHostingConsent,
		"let a cluster host add-ons of other clusters only if its annotation addon.spokelet.io/hosts lists them; always so "+
			"with --require-policies=false, and never with --trust-as-ocm")
}

// Validate checks the configuration without any request, and returns all errors at once.
func (c *Config) Validate() error {
	var wrong command.Complaints
	complain := wrong.About
	for _, problem := range validation.IsDNS1123Label(c.Namespace) {
		complain("namespace", "%q is no name of a namespace: %s", c.Namespace, problem)
	}
	for _, user := range c.AutoApprovedCSRUsers {
		if strings.ContainsAny(user, "*?") {
			complain("auto-approved-csr-users", "%q: users are named exactly, there are no patterns", user)
		}
	}
	// The API server signs for ten minutes at least.
	if limit := c.MaxAddOnCertificateLifetime; limit != 0 && limit < 10*time.Minute {
		complain("max-addon-certificate-lifetime", "%s is less than ten minutes, the shortest lifetime that the API server "+
			"grants", limit)
	}
	if c.WebhookPort < 1 || c.WebhookPort > math.MaxUint16 {
		complain("webhook-port", "%d is no port", c.WebhookPort)
	}
	if c.WebhookURL != "" && c.WebhookService != "" {
		complain("webhook-url", "cannot be used together with --webhook-service")
	}
	if c.WebhookURL != "" && !strings.HasPrefix(c.WebhookURL, "https://") {
		complain("webhook-url", "%q is no https address", c.WebhookURL)
	}
	if _, err := c.service(); err != nil {
		complain("webhook-service", "%s", err)
	}
	if (c.WebhookURL != "" || c.WebhookService != "") && c.WebhookCertDir != "" && c.WebhookCAFile == "" {
		complain("webhook-ca-file", "is needed with --webhook-cert-dir and --webhook-url or --webhook-service")
	}
	for _, problem := range secretProblems(c.WebhookSecret) {
		complain("webhook-secret", "%q is no name of a Secret: %s", c.WebhookSecret, problem)
	}
	c.TLS.Validate(complain)
	if c.RemovalLimitPercent < 0 || c.RemovalLimitPercent > 100 {
		complain("removal-limit-percent", "%d is not between 0 and 100", c.RemovalLimitPercent)
	}
	wrong.Add(c.ConfigPrecedence.Check())
	wrong.Numbers(
		command.Number{Flag: "kube-api-qps", Value: float64(c.QPS)},
		command.Number{Flag: "kube-api-burst", Value: float64(c.Burst)},
		command.Number{Flag: "removal-limit-clusters", Value: float64(c.RemovalLimitClusters)},
		command.Number{Flag: "manifest-limit", Value: float64(c.ManifestLimit), Least: 1},
		command.Number{Flag: "watched-configs", Value: float64(c.WatchedConfigs), Least: 1},
		command.Number{Flag: "workers", Value: float64(c.Workers), Least: 1},
	)
	wrong.Add(c.Election.Validate())
	c.validateForeign(complain)
	return wrong.Err()
}

// secretProblems returns why a name is not valid for a Secret; the empty name means no Secret.
func secretProblems(name string) []string {
	if name == "" {
		return nil
	}
	return validation.IsDNS1123Subdomain(name)
}

// trust returns which certificate requests for a first credential of a cluster are approved without a person.
func (c *Config) trust() approve.Trust {
	return approve.Trust{
		Users: c.AutoApprovedCSRUsers, Joined: c.AutoApproveJoinedClusters, Bound: c.AutoApproveBoundBootstrap,
	}
}

// hosting returns how much a hosting cluster has to say.
func (c *Config) hosting() hosting.Rules {
	return hosting.Rules{
		RequireConsent: (c.RequireHostingConsent || !c.RequirePolicies) && !c.TrustAsOCM, TrustAsOCM: c.TrustAsOCM,
	}
}

// unacceptedLife returns how long a cluster stays that was never accepted; zero means for ever.
func (c *Config) unacceptedLife() time.Duration {
	if c.TrustAsOCM {
		return 0
	}
	return max(0, c.RemoveUnacceptedAfter)
}

// service returns the key of the webhook's service; empty when none is configured.
func (c *Config) service() (types.NamespacedName, error) {
	if c.WebhookService == "" {
		return types.NamespacedName{}, nil
	}
	namespace, name, ok := strings.Cut(c.WebhookService, "/")
	if !ok || namespace == "" || name == "" || strings.Contains(name, "/") {
		return types.NamespacedName{}, fmt.Errorf("%q is not of the form namespace/name", c.WebhookService)
	}
	return types.NamespacedName{Namespace: namespace, Name: name}, nil
}

// leaseDuration, renewDeadline and retryPeriod are defaults of Config.
const (
	leaseDuration = 30 * time.Second
	renewDeadline = 20 * time.Second
	retryPeriod   = 5 * time.Second
)

// addOnsUser returns the user name of the account of add-ons.
func addOnsUser(namespace string) string {
	return "system:serviceaccount:" + namespace + ":" + names.ServiceAccountAddons
}
