package agent

import (
	"math"
	"net/url"
	"path/filepath"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/spokelet/spokelet/agent/join"
	"github.com/spokelet/spokelet/agent/work/missing"
	"github.com/spokelet/spokelet/csr"
	"github.com/spokelet/spokelet/internal/command"
	"github.com/spokelet/spokelet/internal/token"
)

// Bounds of OCM (docs/reference/registration.md, "Timers and bounds").
const (
	// minCertSeconds is the shortest lifetime of a certificate that may be requested.
	minCertSeconds = 3600
	// minHubTimeout is the shortest timeout after which the agent gives up one hub of several.
	minHubTimeout = 180 * time.Second
	// minHubs is the least number of hubs to select from.
	minHubs = 2
)

// driverCSR is the driver that gets credentials by certificate request.
const driverCSR = "csr"

// Validate checks the configuration without a request. It returns all problems at once.
func (c *Config) Validate() error {
	var wrong command.Complaints
	complain := wrong.About
	if c.ClusterName != "" {
		if err := join.CheckClusterName(c.ClusterName); err != nil {
			complain("spoke-cluster-name", "%s", err)
		}
	}
	if strings.Contains(c.AgentID, ":") {
		complain("agent-id", "%q contains a colon, but is a part of a user name that is separated by colons", c.AgentID)
	}
	for _, problem := range validation.IsDNS1123Label(c.Namespace) {
		complain("namespace", "%q is no name of a namespace: %s", c.Namespace, problem)
	}
	if account := c.workAccount(); c.WorkServiceAccount != "" &&
		len(validation.IsDNS1123Label(account.Namespace))+len(validation.IsDNS1123Subdomain(account.Name)) > 0 {
		complain("work-service-account", "%q is not the name of a ServiceAccount, nor namespace/name", c.WorkServiceAccount)
	}
	c.validateDuties(complain)
	c.validateHosted(complain)
	wrong.Add(c.Election.Validate())
	c.validateServing(complain)
	for _, problem := range validation.IsDNS1123Subdomain(c.HubSecret) {
		complain("hub-kubeconfig-secret", "%q is no name of a Secret: %s", c.HubSecret, problem)
	}
	if c.HubKubeconfig != "" && filepath.Clean(c.HubKubeconfig) != filepath.Join(c.HubKubeconfigDir, csr.KeyKubeconfig) {
		complain("hub-kubeconfig", "%q is not the file %s in --hub-kubeconfig-dir", c.HubKubeconfig, csr.KeyKubeconfig)
	}
	if s := c.CertExpirationSeconds; s != 0 && s < minCertSeconds {
		complain("client-cert-expiration-seconds", "must be 0 or at least %d, got %d", minCertSeconds, s)
	}
	if a := c.RegistrationAuth; a != "" && a != driverCSR {
		complain("registration-auth", "%q is not supported, only %s is: keep OCM's agent for clusters that join by "+
			"awsirsa or grpc", a, driverCSR)
	}
	if d := c.AddonDriver; d != "" && d != driverCSR && d != token.Driver {
		complain("addon-kubeclient-registration-auth", "must be %s or %s, got %q", driverCSR, token.Driver, d)
	}
	if s := c.AddonTokenExpirationSeconds; s != 0 && s < token.MinExpirationSeconds {
		complain("addon-token-expiration-seconds", "must be at least %d, got %d", token.MinExpirationSeconds, s)
	}
	for _, address := range c.ExternalServerURLs {
		if u, err := url.Parse(address); err != nil || u.Scheme != "https" || u.Host == "" {
			complain("spoke-external-server-urls", "%q is no https address", address)
		}
	}
	if p := missing.Policy(c.EvictMissingWorks); p != missing.Hold && p != missing.Grace {
		complain("evict-missing-works", "must be %s or %s, got %q", missing.Hold, missing.Grace, p)
	}
	if c.WorkSource != driverKube {
		complain("workload-source-driver", "%q is not supported, only %s is: keep OCM's agent for clusters whose works "+
			"come as CloudEvents", c.WorkSource, driverKube)
	}
	c.validateNumbers(&wrong)
	return wrong.Err()
}

// validateDuties checks the duties of the process and the flags that they need.
func (c *Config) validateDuties(complain func(flag, format string, args ...any)) {
	switch {
	case c.Duties.Registration:
		c.validateHubs(complain)
	case !c.Duties.Works:
		complain("duties", "a process without any does nothing: set Registration, Works or both")
	case c.hubFile() == "":
		complain("hub-kubeconfig-dir", "is empty, as --workload-source-config is: one of them must lead to the kubeconfig "+
			"that the registration agent keeps")
	}
}

// validateHosted checks the flags of hosted mode.
func (c *Config) validateHosted(complain func(flag, format string, args ...any)) {
	if len(c.HostedAddonNamespaces) > 0 && c.SpokeKubeconfig == "" {
		complain("hosted-addon-namespaces", "it is for hosted mode, which --spoke-kubeconfig turns on")
	}
	for _, name := range c.HostedAddonNamespaces {
		for _, problem := range validation.IsDNS1123Label(name) {
			complain("hosted-addon-namespaces", "%q is no name of a namespace: %s", name, problem)
		}
	}
}

// hubFile is the path of the hub kubeconfig of a process that only does works; empty for none.
func (c *Config) hubFile() string {
	switch {
	case c.WorkSourceConfig != "":
		return c.WorkSourceConfig
	case c.HubKubeconfigDir != "":
		return filepath.Join(c.HubKubeconfigDir, csr.KeyKubeconfig)
	}
	return ""
}

// validateServing checks how health is served.
func (c *Config) validateServing(complain func(flag, format string, args ...any)) {
	if c.HealthPort < 0 || c.HealthPort > math.MaxUint16 {
		complain("health-port", "%d is no port: it must be between 1 and %d, or 0 for the default", c.HealthPort,
			math.MaxUint16)
	}
	c.TLS.Validate(complain)
}

// validateHubs checks the flags of one hub or several.
func (c *Config) validateHubs(complain func(flag, format string, args ...any)) {
	switch given := len(c.BootstrapKubeconfigs); {
	case c.Gates.MultipleHubs && given < minHubs:
		complain("bootstrap-kubeconfigs", "the gate MultipleHubs needs at least %d, got %d", minHubs, given)
	case !c.Gates.MultipleHubs && given > 0:
		complain("bootstrap-kubeconfigs", "it is for several hubs, which --feature-gates=MultipleHubs=true turns on")
	case !c.Gates.MultipleHubs && c.BootstrapKubeconfig == "" && c.BootstrapSecret == "":
		complain("bootstrap-kubeconfig", "is empty, as --bootstrap-kubeconfig-secret is: one of them must lead to the hub")
	}
	for _, entry := range c.BootstrapKubeconfigs {
		if entry == "" || entry == secretEntry {
			complain("bootstrap-kubeconfigs", "%q names neither a file nor a Secret", entry)
		}
	}
	for flag, value := range map[string]time.Duration{
		"hub-connection-timeout-seconds": c.HubTimeout, "hub-unauthorized-timeout": c.UnauthorizedAfter,
		"cluster-healthcheck-period": c.Period,
	} {
		if value <= 0 {
			complain(flag, "must be more than 0, got %s", value)
		}
	}
}

// validateNumbers complains about numbers that are out of range.
func (c *Config) validateNumbers(wrong *command.Complaints) {
	wrong.Numbers(
		command.Number{Flag: "max-custom-cluster-claims", Value: float64(c.Claims.MaxCustom)},
		command.Number{Flag: "appliedmanifestwork-eviction-grace-period", Value: float64(c.EvictionGracePeriod)},
		command.Number{Flag: "workload-agent-workers", Value: float64(c.Workers), Least: 1},
		command.Number{Flag: "work-max-watches", Value: float64(c.MaxWatches), Least: 1},
		command.Number{Flag: "max-json-raw-length", Value: float64(c.MaxJSONRawLength), Least: 1},
		command.Number{Flag: "work-cache-size", Value: float64(c.WorkCacheMiB), Least: 1},
		command.Number{Flag: "kube-api-qps", Value: float64(c.SpokeQPS)},
		command.Number{Flag: "kube-api-burst", Value: float64(c.SpokeBurst)},
		command.Number{Flag: "hub-kube-api-qps", Value: float64(c.HubQPS)},
		command.Number{Flag: "hub-kube-api-burst", Value: float64(c.HubBurst)},
	)
	if c.WorkRelist < time.Minute {
		wrong.About("work-relist-period", "must not be below %s", time.Minute)
	}
}
