package manager

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"net/http"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/spokelet/spokelet/hub/addon"
	"github.com/spokelet/spokelet/hub/approval"
	"github.com/spokelet/spokelet/internal/command"
	"github.com/spokelet/spokelet/internal/hubprocess"
	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/internal/objectwatch"
)

const (
	// leaseDuration, renewDeadline and retryPeriod are defaults of Config.
	leaseDuration = 30 * time.Second
	renewDeadline = 20 * time.Second
	retryPeriod   = 5 * time.Second
	// defaultWorkers is the default of Config.Workers.
	defaultWorkers = 10
	// fallbackNamespace is the default namespace of a program outside of a pod.
	fallbackNamespace = "default"
)

// Config is the configuration of a program with add-ons. The zero value works: an empty field has its default.
type Config struct {
	// Name is the name of the program: of its ServiceAccount, its roles and its leader lease. Empty means the name of the
	// first add-on with "-manager".
	Name string
	// Kubeconfig is the path of a kubeconfig of the hub; empty means the pod's own service account.
	Kubeconfig string
	// Namespace is the namespace of the program, for its leader lease and for CAs that name none. Empty means that of the
	// pod, and outside of a pod "default".
	Namespace string
	// HubNamespace is the namespace of the hub manager, in which one of Spokelet stores the contents of configurations.
	// Empty means "open-cluster-management-hub".
	HubNamespace string
	// RequireHostingConsent makes a cluster host add-ons of others only if its annotation addon.spokelet.io/hosts lists
	// them. Without it, a cluster with that annotation still hosts no others.
	RequireHostingConsent bool
	// ConfigPrecedence says which of several configurations of one kind counts; empty means addon.LastCounts. The hub
	// manager has the same setting for templates.
	ConfigPrecedence addon.Precedence
	// TrustAsOCM is for a hub without Spokelet's hub manager: the program approves requests for the API server of the hub
	// although no hub manager has looked at them, and its rights allow that. It also trusts annotations that were copied
	// from a cluster, as a program of OCM's library does.
	TrustAsOCM bool

	// LeaderElect makes a replica wait for the leader lease before it acts.
	LeaderElect bool
	// LeaseDuration is how long after its last renewal the lease expires, RenewDeadline how long a leader may fail to
	// renew it before it stops, RetryPeriod the pause between two attempts. Zero means 30, 20 and 5 seconds.
	LeaseDuration, RenewDeadline, RetryPeriod time.Duration

	// MetricsAddress serves /metrics over http; empty or "0" is off.
	MetricsAddress string
	// HealthAddress serves /healthz and /readyz over http; empty or "0" is off.
	HealthAddress string
	// QPS and Burst limit requests to the hub; QPS zero leaves that to API Priority and Fairness.
	QPS   float32
	Burst int
	// WatchedConfigs is how many configurations of other kinds than AddOnDeploymentConfig are watched, one by one; zero
	// means 2000. An add-on may have half of them.
	WatchedConfigs int
	// Workers is how many add-ons on clusters are reconciled at once; zero means 10.
	Workers int
	// Verbosity is the highest level of log lines.
	Verbosity int

	// WrapTransport, unless nil, is put around every transport, for tracing for example; it is called several times, and
	// what it returns must be safe for concurrent use.
	WrapTransport func(http.RoundTripper) http.RoundTripper
}

// DefaultConfig returns the defaults of the flags of a program with these add-ons: the defaults of the fields, with
// leader election and health endpoints.
func DefaultConfig(agents ...addon.Agent) Config {
	c := Config{LeaderElect: true, HealthAddress: ":8081"}
	c.complete(agents)
	return c
}

// complete replaces empty fields by their defaults.
func (c *Config) complete(agents []addon.Agent) {
	if c.Name == "" && len(agents) > 0 {
		c.Name = agents[0].About().Name + "-manager"
	}
	if c.Namespace == "" {
		c.Namespace = command.Namespace(fallbackNamespace)
	}
	c.HubNamespace = cmp.Or(c.HubNamespace, names.NamespaceHub)
	c.ConfigPrecedence = cmp.Or(c.ConfigPrecedence, addon.LastCounts)
	c.LeaseDuration = cmp.Or(c.LeaseDuration, leaseDuration)
	c.RenewDeadline = cmp.Or(c.RenewDeadline, renewDeadline)
	c.RetryPeriod = cmp.Or(c.RetryPeriod, retryPeriod)
	c.MetricsAddress = cmp.Or(c.MetricsAddress, hubprocess.Off)
	c.WatchedConfigs = cmp.Or(c.WatchedConfigs, objectwatch.DefaultLimit)
	c.Workers = cmp.Or(c.Workers, defaultWorkers)
}

// AddFlags binds flags to c; their defaults are the values in c.
func (c *Config) AddFlags(f *pflag.FlagSet) {
	f.StringVar(&c.Kubeconfig, "kubeconfig", c.Kubeconfig,
		"path of a kubeconfig of the hub; empty means the pod's own service account")
	f.StringVar(&c.Name, "name", c.Name, "name of this program: of its ServiceAccount, its roles and its lease")
	f.StringVar(&c.Namespace, "namespace", c.Namespace,
		"namespace of this program, for its lease; by default POD_NAMESPACE or the namespace of the pod")
	f.StringVar(&c.HubNamespace, "hub-namespace", c.HubNamespace,
		"namespace of the hub manager, in which the contents of configurations are stored")
	f.BoolVar(&c.RequireHostingConsent, "require-hosting-consent", c.RequireHostingConsent,
		"let a cluster host add-ons of other clusters only if its annotation addon.spokelet.io/hosts lists them")
	command.AddConfigPrecedence(f, (*string)(&c.ConfigPrecedence))
	f.BoolVar(&c.TrustAsOCM, "trust-as-ocm", c.TrustAsOCM,
		"for a hub of Open Cluster Management: approve credentials of add-ons that no hub manager has confirmed, and "+
			"believe annotations that were copied from a cluster")
	f.BoolVar(&c.LeaderElect, "leader-elect", c.LeaderElect, "wait for the leader lease before doing anything")
	command.AddElectionTimes(f, &c.LeaseDuration, &c.RenewDeadline, &c.RetryPeriod)
	command.AddEndpoints(f, &c.MetricsAddress, &c.HealthAddress)
	command.AddRequests(f, "", "the hub", command.Requests{QPS: &c.QPS, Burst: &c.Burst})
	command.AddWatchedConfigs(f, "AddOnDeploymentConfig", &c.WatchedConfigs)
	f.IntVar(&c.Workers, "workers", c.Workers, "number of add-ons on clusters that are reconciled at once")
	command.AddVerbosity(f, &c.Verbosity)
}

// validate reports everything that is wrong with a complete configuration.
func (c *Config) validate() error {
	var wrong []error
	complain := func(field, format string, args ...any) {
		wrong = append(wrong, fmt.Errorf("%s: %s", field, fmt.Sprintf(format, args...)))
	}
	for _, problem := range validation.IsDNS1123Label(c.Name) {
		complain("name", "%q is not valid: %s", c.Name, problem)
	}
	for _, problem := range validation.IsDNS1123Label(c.Namespace) {
		complain("namespace", "%q is no name of a namespace: %s", c.Namespace, problem)
	}
	for _, problem := range validation.IsDNS1123Label(c.HubNamespace) {
		complain("hub namespace", "%q is no name of a namespace: %s", c.HubNamespace, problem)
	}
	if err := c.ConfigPrecedence.Check(); err != nil {
		wrong = append(wrong, err)
	}
	if math.IsNaN(float64(c.QPS)) || c.QPS < 0 {
		complain("QPS", "must not be below 0")
	}
	if c.Burst < 0 {
		complain("burst", "must not be below 0")
	}
	if c.WatchedConfigs < 1 {
		complain("watched configs", "must not be below 1")
	}
	if c.Workers < 1 {
		complain("workers", "must not be below 1")
	}
	election := c.election()
	if err := election.Validate(); err != nil {
		wrong = append(wrong, err)
	}
	return errors.Join(wrong...)
}

// account returns the ServiceAccount of the program as namespace/name.
func (c *Config) account() string { return c.Namespace + "/" + c.Name }

// identity returns how the program treats identities in requests.
func (c *Config) identity() approval.Identity {
	if c.TrustAsOCM {
		return approval.IdentityTrusted
	}
	return approval.IdentityAwaited
}

// election returns how replicas elect a leader.
func (c *Config) election() command.Election {
	return command.Election{
		LeaderElect: c.LeaderElect, LeaseDuration: c.LeaseDuration, RenewDeadline: c.RenewDeadline,
		RetryPeriod: c.RetryPeriod,
	}
}
