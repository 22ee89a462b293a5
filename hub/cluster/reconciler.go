package cluster

import (
	"time"

	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/csr/approve"
	"github.com/spokelet/spokelet/hub/cluster/meter"
	"github.com/spokelet/spokelet/internal/addonapi"
	"github.com/spokelet/spokelet/internal/reconcile"
)

// Reconciler reconciles ManagedClusters on the hub.
type Reconciler struct {
	// Client reads from the cache of the manager and writes. The cache contains ManifestWorks of add-ons only, has the
	// indexes of Index, and may trim Leases with TrimLease.
	Client client.Client
	// Live reads from the API server.
	Live client.Reader
	// AddOns reads and writes add-ons.
	AddOns addonapi.Client
	// ForeignWorks caches the metadata of the ManifestWorks that the cache of Client does not contain.
	ForeignWorks cache.Cache
	// Trust decides which certificate requests are approved, and their clusters accepted, without a person.
	Trust approve.Trust
	// UnacceptedLife is how long a cluster stays that was never accepted and whose certificate requests nobody approved;
	// zero means for ever.
	UnacceptedLife time.Duration
	// Labels are put on the namespace, the roles and the bindings of an accepted cluster beside ours. One that is taken
	// from here stays where it is.
	Labels map[string]string
	// Meter counts what the agents of clusters do.
	Meter *meter.Meter
	// Recorder records an Event in the namespace of a cluster whose agent is silent; nil records none.
	Recorder events.EventRecorder
	// Clock is the clock of a pass.
	Clock clock.PassiveClock
	// Workers is how many clusters are reconciled at the same time.
	Workers int

	requests reconcile.Queue
}
