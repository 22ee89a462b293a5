package work

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/spokelet/spokelet/agent/work/feedback"
	"github.com/spokelet/spokelet/agent/work/offline"
	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/internal/reconcile"
)

const (
	// DefaultEvictionGrace is how long the objects of a work that vanished from the hub stay.
	DefaultEvictionGrace = time.Hour
	// EvictionDisabled is the grace from which on nothing is ever evicted.
	EvictionDisabled = 100 * 365 * 24 * time.Hour
	// DefaultWorkers is how many works are worked on at the same time.
	DefaultWorkers = 10
	// evictionWorkers is how many works that vanished are looked after at the same time.
	evictionWorkers = 2
	// coalesce is how long an event of the spoke waits for further ones before its work is looked at.
	coalesce = 10 * time.Millisecond
)

// Reconciler keeps the objects of every ManifestWork of one cluster on the spoke and tells the hub about them.
type Reconciler struct {
	// Cluster is the name of the managed cluster, which is the namespace of its works on the hub.
	Cluster string
	// AgentID identifies the agent in its AppliedManifestWorks; empty means HubHash (work contract, section 1.11).
	AgentID string
	// HubHash identifies the hub, see the function HubHash.
	HubHash string
	// Hub is the hub. Its cache must cover the ManifestWorks of the namespace Cluster and should use Transform.
	Hub cluster.Cluster
	// Spoke is the managed cluster. Its cache must cover AppliedManifestWorks and should use Transform; its
	// configuration should not limit the rate of requests much below what the API server takes.
	Spoke cluster.Cluster
	// Clock tells the time; nil is the real one.
	Clock clock.PassiveClock
	// EvictionGrace is how long the objects of a work that vanished from the hub stay; 0 means DefaultEvictionGrace,
	// EvictionDisabled and more means forever.
	EvictionGrace time.Duration
	// Workers is how many works are worked on at the same time; 0 means DefaultWorkers.
	Workers int
	// OrderPatience is how long an object that does not go holds up those that are deleted after it; 0 means
	// DefaultOrderPatience.
	OrderPatience time.Duration
	// MaxWatches is how many watches of objects there are at most; objects beyond are looked at every five to seven
	// minutes. 0 means DefaultMaxWatches.
	MaxWatches int
	// Relist is how long a watch of objects is trusted before it lists anew, lengthened by up to a half; 0 means
	// DefaultRelist.
	Relist time.Duration
	// TellEvents makes Events on the hub tell what happens to works; the agent must be allowed to create and patch them.
	TellEvents bool
	// Metrics receives what is counted, see metrics.go; nil keeps it to ourselves.
	Metrics prometheus.Registerer
	// RawFeedback lets feedback rules report lists, maps and fractions as JSON (gate RawFeedbackJsonString).
	RawFeedback bool
	// MaxJSONRawLength is the longest such JSON, in bytes; 0 means feedback.DefaultMaxRawLength. The API takes no more than
	// 1024 characters whatever stands here.
	MaxJSONRawLength int
	// Cache has copies of the works, for a restart while the hub is away; nil keeps none.
	Cache *offline.Store

	mapper     meta.RESTMapper
	ledger     *ledger
	watcher    *watcher
	applier    applier
	drainer    drainer
	authorizer *authorizer
	memory     *memory
	queues     queues
	herald     *herald
	counts     *counters
	// absence is nil when nothing is done before the hub has listed its works.
	absence *absence
}

// queues are the queues of the controllers, for the events of the spoke and for copies.
type queues struct {
	works, applied, copies workqueue.TypedRateLimitingInterface[ctrl.Request]
}

// SetupWithManager registers the two controllers of the package: one for works and one for AppliedManifestWorks that
// have no work any more. The manager, or whoever starts it, must also start Hub and Spoke.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	if r.absence == nil {
		if err := r.SetupOffline(mgr); err != nil {
			return err
		}
	}
	if err := r.complete(); err != nil {
		return err
	}
	if err := r.addReporters(mgr); err != nil {
		return err
	}
	if r.Cache != nil {
		if err := r.setupCopier(mgr); err != nil {
			return err
		}
	}
	if r.absence != nil {
		close(r.absence.admitted)
	} else if err := r.setupWorks(mgr, r.worksSource()); err != nil {
		return err
	}
	e := &evictor{Reconciler: r}
	err := ctrl.NewControllerManagedBy(mgr).Named("agent.work.eviction").WithOptions(reconcile.Options(evictionWorkers)).
		WatchesRawSource(source.Func(e.start)).
		WatchesRawSource(e.worksSource()).
		WatchesRawSource(e.appliedSource()).
		Complete(e)
	if err != nil {
		return fmt.Errorf("setting up agent.work.eviction: %w", err)
	}
	return nil
}

// setupWorks registers the controller of works, whose works come from a source.
func (r *Reconciler) setupWorks(mgr ctrl.Manager, works source.Source) error {
	if r.Metrics != nil && r.Cache != nil {
		if err := mgr.Add(r.copyMetrics()); err != nil {
			return fmt.Errorf("adding the metrics of the copies of works: %w", err)
		}
	}
	err := ctrl.NewControllerManagedBy(mgr).Named("agent.work").WithOptions(reconcile.Options(r.Workers)).
		WatchesRawSource(source.Func(r.start)).
		WatchesRawSource(works).
		WatchesRawSource(r.appliedSource()).
		Complete(r)
	if err != nil {
		return fmt.Errorf("setting up agent.work: %w", err)
	}
	return nil
}

// complete fills in what was left out and builds the parts, once.
func (r *Reconciler) complete() error {
	if r.ledger != nil {
		return nil
	}
	r.AgentID = cmp.Or(r.AgentID, r.HubHash)
	if r.Clock == nil {
		r.Clock = clock.RealClock{}
	}
	r.EvictionGrace = cmp.Or(r.EvictionGrace, DefaultEvictionGrace)
	r.Workers = cmp.Or(r.Workers, DefaultWorkers)
	r.MaxWatches, r.Relist = cmp.Or(r.MaxWatches, DefaultMaxWatches), cmp.Or(r.Relist, DefaultRelist)
	r.OrderPatience = cmp.Or(r.OrderPatience, DefaultOrderPatience)
	r.MaxJSONRawLength = cmp.Or(r.MaxJSONRawLength, feedback.DefaultMaxRawLength)
	config := rest.CopyConfig(r.Spoke.GetConfig())
	config.UserAgent = names.FieldManagerWork
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return fmt.Errorf("building the client of the spoke: %w", err)
	}
	requests, err := requestsTo(config, client)
	if err != nil {
		return err
	}
	objects := dynamic.New(requests)
	metas, err := metadata.NewForConfigAndClient(metadata.ConfigFor(config), client)
	if err != nil {
		return fmt.Errorf("building the metadata client of the spoke: %w", err)
	}
	if r.counts, err = newCounters(r.Metrics); err != nil {
		return err
	}
	kinds := r.Spoke.GetRESTMapper()
	r.mapper = &kindMapper{RESTMapper: kinds, known: kinds, fresh: func() (meta.RESTMapper, error) {
		return apiutil.NewDynamicRESTMapper(r.Spoke.GetConfig(), r.Spoke.GetHTTPClient())
	}}
	r.watcher = newWatcher(metas, r.MaxWatches, r.Relist)
	r.ledger = newLedger(r.wake, r.watcher.moved.Fire)
	r.watcher.ledger = r.ledger
	r.applier = applier{
		spoke: spoke{client: objects}, evaluator: feedback.New(r.RawFeedback, r.MaxJSONRawLength),
	}
	r.drainer = drainer{
		spoke: spoke{client: objects, requests: requests}, ledger: r.ledger, mapper: r.mapper, counts: r.counts,
		patience: r.OrderPatience,
	}
	r.memory = newMemory()
	if r.authorizer, err = newAuthorizer(config, client, metas, r.Clock, r.wake); err != nil {
		return err
	}
	return nil
}

// start receives the queue of the works and starts to watch the objects of the spoke.
func (r *Reconciler) start(ctx context.Context, queue workqueue.TypedRateLimitingInterface[ctrl.Request]) error {
	r.queues.works = queue
	go r.watcher.run(ctx)
	go r.authorizer.Run(ctx)
	return nil
}

// wake makes the holder of an object look again, a moment later so that several events make one pass.
func (r *Reconciler) wake(h holder) {
	if h.applied {
		r.queues.applied.AddAfter(ctrl.Request{NamespacedName: types.NamespacedName{Name: h.name}}, coalesce)
		return
	}
	r.queues.works.AddAfter(r.request(h.name), coalesce)
}

// request is the key of a work.
func (r *Reconciler) request(work string) ctrl.Request {
	return ctrl.Request{NamespacedName: types.NamespacedName{Namespace: r.Cluster, Name: work}}
}

// Reconcile brings one work, from its first sight to its last, to where it should be.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	f, err := r.observe(ctx, req.Name)
	if err != nil {
		return reconcile.FromError(err).Settle(f.now)
	}
	phase := f.phase()
	defer func() { r.counts.pass(phase, r.Clock.Since(f.now)) }()
	if phase == phaseApply {
		if err := r.tellLearned(ctx, f); err != nil {
			return reconcile.FromError(err).Settle(f.now)
		}
	}
	r.outdate(f, phase)
	defer r.keep(f, phase)
	var outcome reconcile.Outcome
	switch phase {
	case phaseUnknown:
	case phaseOffline:
		outcome = r.applyOffline(ctx, f)
	case phaseGone:
		r.forget(f)
	case phaseAbandon:
		outcome, _ = r.takeDown(ctx, f)
		if f.applied == nil {
			r.forget(f)
		}
	case phaseStale:
		outcome = reconcile.Waiting(f.now.Add(staleDelay))
	case phaseRelease:
		outcome = r.release(ctx, f)
	case phaseDrain:
		outcome = r.drainApplied(ctx, f)
	case phaseApply:
		outcome = r.apply(ctx, f)
	}
	return outcome.SettleIn(r.queues.works, req, f.now)
}

// forget drops what the process remembers of a work.
func (r *Reconciler) forget(f *facts) {
	r.ledger.claim(f.holder, nil, nil)
	if !f.holder.applied {
		r.authorizer.Forget(f.holder.name)
	}
	r.memory.forget(f.holder)
}
