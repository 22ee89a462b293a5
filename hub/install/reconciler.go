package install

import (
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/hub/fleet"
	"github.com/spokelet/spokelet/internal/addonapi"
	"github.com/spokelet/spokelet/internal/gate"
)

// Reconciler installs add-ons where Placements select clusters, and removes them where none does any more.
type Reconciler struct {
	// Client reads from the cache of the manager, and Live from the API server.
	Client client.Client
	Live   client.Reader
	// AddOns reads and writes add-ons.
	AddOns addonapi.Client
	// Recorder records an Event on a ClusterManagementAddOn about add-ons that are not removed; nil records none.
	Recorder events.EventRecorder
	// Clock is the clock of a pass.
	Clock clock.PassiveClock
	// Workers is how many add-ons are reconciled at the same time.
	Workers int
	// Placements knows what Placements have decided.
	Placements *fleet.Placements
	// Gates has the policies and windows of add-ons; nil has none.
	Gates *gate.Reader
	// Limit is how many clusters may lose an add-on at once without an edit that explains it; the zero Limit holds
	// nothing.
	Limit Limit
	// TrustAsOCM copies all annotations of a cluster about add-ons to its add-ons, its hosting cluster among them.
	TrustAsOCM bool

	memory memory
}
