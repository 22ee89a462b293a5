package placement

import (
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/hub/fleet"
	"github.com/spokelet/spokelet/internal/reconcile"
)

// Reconciler turns Placements into PlacementDecisions.
type Reconciler struct {
	// Client reads from the cache of the manager and writes.
	Client client.Client
	// Live reads from the API server.
	Live client.Reader
	// Clock is the clock of a pass.
	Clock clock.PassiveClock
	// Workers is how many Placements are reconciled at the same time.
	Workers int
	// Passes is told what is decided; nil is not.
	Passes *fleet.Passes

	memory memory
	// listing lets one pass at a time list the clusters of the API server.
	listing reconcile.Gate
	// turns leave workers to Placements with few writes, queue takes those whose turn it is.
	turns reconcile.Turns
	queue queue
}

type queue = workqueue.TypedRateLimitingInterface[ctrl.Request]
