package work

import (
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cluster"

	"github.com/spokelet/spokelet/agent/work/apply"
	"github.com/spokelet/spokelet/agent/work/executor"
	"github.com/spokelet/spokelet/agent/work/inventory"
	"github.com/spokelet/spokelet/agent/work/latency"
	"github.com/spokelet/spokelet/agent/work/missing"
	"github.com/spokelet/spokelet/agent/work/offline"
	"github.com/spokelet/spokelet/agent/work/prune"
	"github.com/spokelet/spokelet/agent/work/spoke"
	"github.com/spokelet/spokelet/agent/work/watch"
	"github.com/spokelet/spokelet/internal/reconcile"
)

const (
	// DefaultEvictionGrace is how long the objects of a work that vanished from the hub stay.
	DefaultEvictionGrace = time.Hour
	// EvictionDisabled is the shortest grace period with which nothing is ever evicted.
	EvictionDisabled = 100 * 365 * 24 * time.Hour
	// DefaultHubPatience is how long, after a start, the copies of works wait for the hub.
	DefaultHubPatience = 10 * time.Second
	// DefaultWorkers is how many works are reconciled at the same time.
	DefaultWorkers = 10
	// evictionWorkers is how many AppliedManifestWorks without work are reconciled at the same time.
	evictionWorkers = 2
	// coalesce is how long an event of the spoke waits for further ones before its work is reconciled.
	coalesce = 10 * time.Millisecond
)

// Reconciler applies the ManifestWorks of one cluster to the spoke and reports their status to the hub. Its exported
// fields are the whole configuration, one for each flag of the agent that concerns works, hence their number.
type Reconciler struct {
	// Cluster is the name of the managed cluster, which is the namespace of its works on the hub.
	Cluster string
	// AgentID identifies the agent in its AppliedManifestWorks; empty means HubHash (docs/reference/work.md,
	// "AppliedManifestWork").
	AgentID string
	// HubHash identifies the hub, see the function HubHash.
	HubHash string
	// Hub is the hub. Its cache must cover the ManifestWorks of the namespace Cluster and should use Transform.
	Hub cluster.Cluster
	// Spoke is the managed cluster. Its cache must cover AppliedManifestWorks and should use Transform; its
	// configuration should not limit the rate of requests much below what the API server takes.
	Spoke cluster.Cluster
	// Objects is the client configuration for the objects of works; nil means that of Spoke. The reconciler's own records
	// and reviews of executors are with that of Spoke.
	Objects *rest.Config
	// Clock is the clock; nil means the real one.
	Clock clock.PassiveClock
	// EvictionGrace is how long the objects of a work that vanished from the hub stay; 0 means DefaultEvictionGrace,
	// EvictionDisabled and more means forever.
	EvictionGrace time.Duration
	// Missing is what happens to the objects of works when many are missing on the hub at once; empty means missing.Grace.
	// For missing.Hold, the cache of Hub must cover the ManagedCluster, whose condition reports it.
	Missing missing.Policy
	// OnMissing is called with the report about works that are missing whose objects are held, and with an empty text when
	// there are none any more. Optional; it must not block.
	OnMissing func(text string)
	// Workers is how many works are reconciled at the same time; 0 means DefaultWorkers.
	Workers int
	// DeletionTimeout is how long an object that does not go blocks the deletion of those after it; 0 means
	// prune.DefaultTimeout.
	DeletionTimeout time.Duration
	// MaxWatches is how many watches of objects there are at most; objects that these cannot cover are read every five to
	// seven minutes. 0 means watch.DefaultMaxWatches.
	MaxWatches int
	// Relist is how long a watch of objects lasts before it lists again, lengthened by up to a half; 0 means
	// watch.DefaultRelist.
	Relist time.Duration
	// RecordEvents records Events about works on the hub; the agent must be allowed to create and patch them.
	RecordEvents bool
	// Metrics registers the metrics, see metrics.go; nil means none.
	Metrics prometheus.Registerer
	// RawFeedback lets feedback rules report lists, maps and fractions as JSON (gate RawFeedbackJsonString).
	RawFeedback bool
	// Latency gets a line when a generation of a work is applied (gate ManifestWorkApplyLatency); nil writes none.
	Latency *latency.Log
	// MaxJSONRawLength is the longest such JSON, in bytes; 0 means feedback.DefaultMaxRawLength. The API accepts no more
	// than 1024 characters.
	MaxJSONRawLength int
	// Cache has copies of the works, for a restart while the hub is away; nil keeps none.
	Cache *offline.Store

	// HubPatience is how long, after a start, the copies wait for the hub to list its works; 0 means DefaultHubPatience.
	HubPatience time.Duration

	// parts are built once, by complete.
	parts
	// turns leave workers to small works.
	turns reconcile.Turns
	// absence is nil when nothing is done before the hub has listed its works.
	absence *absence
}

// parts are what a Reconciler works with.
type parts struct {
	mapper     meta.RESTMapper
	inventory  *inventory.Writer
	store      *watch.Store
	watcher    *watch.Watcher
	authorizer *executor.Authorizer
	applier    apply.Applier
	// room bounds what passes decode at the same time.
	room   *spoke.Room
	pruner prune.Pruner
	notes  *notes
	// publishers make the requests of each kind; nil for a reconciler that was not set up, whose passes make them.
	publishers [lanes]*publisher
	// hubMetas patches statuses; nil puts them as a whole.
	hubMetas metadata.Interface
	queues   queues
	events   *recorder
	counts   *counters
}

// queues are the queues of the controllers, for the events of the spoke and for copies.
type queues struct {
	works, applied, copies workqueue.TypedRateLimitingInterface[ctrl.Request]
}

// forget drops everything that this process knows of a work.
func (r *Reconciler) forget(f *facts) {
	r.store.Forget(f.owner)
	r.authorizer.Forget(f.owner.Name)
	r.notes.Forget(f.owner)
	r.Latency.Forget(r.Cluster, f.owner.Name)
}

// wake reconciles the owner of an object, a moment later so that several events cause one pass.
func (r *Reconciler) wake(o watch.Owner) {
	if o.Applied {
		r.queues.applied.AddAfter(ctrl.Request{NamespacedName: types.NamespacedName{Name: o.Name}}, coalesce)
		return
	}
	r.queues.works.AddAfter(r.request(o.Name), coalesce)
}

// request is the key of a work.
func (r *Reconciler) request(work string) ctrl.Request {
	return ctrl.Request{NamespacedName: types.NamespacedName{Namespace: r.Cluster, Name: work}}
}

// absence is the time from the start of the reconciler until the hub has listed its works.
type absence struct {
	// admitted is closed when the hub may be asked for works.
	admitted chan struct{}
	// over reports that the hub has listed its works, which count from then on.
	over atomic.Bool
	// trusted reports that the copies of works count. Before, an event may come of a hub that is about to have listed its
	// works, and says nothing that the copy knows.
	trusted atomic.Bool
}

// offline reports whether the works are those of the copies.
func (r *Reconciler) offline() bool { return r.absence != nil && !r.absence.over.Load() }
