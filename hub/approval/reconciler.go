package approval

import (
	"io"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/csr/approve"
	"github.com/spokelet/spokelet/hub/addon"
	"github.com/spokelet/spokelet/internal/addonapi"
)

// Reconciler approves and signs certificate requests.
type Reconciler struct {
	// Client reads requests, clusters and add-ons from a cache and writes to the hub. The cache contains the requests that
	// Selector selects and has the indexes of Index.
	Client client.Client
	// Secrets reads Secrets of CAs from the API server as names.ServiceAccountAddons, so that the API server refuses every
	// Secret that nobody granted.
	Secrets client.Reader
	// Home is the namespace of this program, for CAs that name none; empty means names.NamespaceHub.
	Home string
	// Account is the ServiceAccount of this program as namespace/name, for messages; empty means those of the hub manager
	// in Home.
	Account string
	// UnmarkedCAs lets CAs outside of Home serve that do not say which add-ons they serve, as in OCM. It is for programs
	// whose add-ons are all of one author.
	UnmarkedCAs bool
	// AddOns reads add-ons.
	AddOns addonapi.Client
	// Live reads from the API server: ManagedClusters when a request asks for a first credential, and each request before
	// it is written, with the cluster and the add-on that it is of.
	Live client.Reader
	// Agents finds the agent of an add-on, which defines its registrations and CAs. Requests of an add-on without an agent
	// are left to others.
	Agents addon.Lookup
	// Configurer decides the configurations of add-ons.
	Configurer addon.Configurer
	// Trust decides which requests for a first credential of a cluster are approved without a person.
	Trust approve.Trust
	// Identity is how this program treats the identities in requests of add-ons for the API server of the hub.
	Identity Identity
	// MaxLifetime is the maximum lifetime of certificates of add-ons; zero leaves it to the signer.
	MaxLifetime time.Duration
	// Clock is the clock of a pass.
	Clock clock.PassiveClock
	// Random is the source of serial numbers: crypto/rand.Reader outside tests.
	Random io.Reader
	// Metrics registers the counters, see the package documentation; nil registers none.
	Metrics prometheus.Registerer
	// Workers is how many requests are judged at the same time.
	Workers int

	memory
}
