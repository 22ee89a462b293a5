package work

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/agent/work/apply"
	"github.com/spokelet/spokelet/agent/work/inventory"
	"github.com/spokelet/spokelet/agent/work/prune"
	"github.com/spokelet/spokelet/agent/work/watch"
	"github.com/spokelet/spokelet/internal/reconcile"
)

// Labels of the metrics. Their values are few and fixed; the name of an object is never one.
const (
	labelPhase  = "phase"
	labelResult = "result"
	labelAction = "action"
	labelReason = "reason"
	labelState  = "state"
)

// Values of labelResult.
const (
	applySucceeded = "applied"
	applyFailed    = "failed"

	eventSent    = "sent"
	eventDropped = "dropped"
	eventRefused = "refused"
)

// counters count what this package does. The same counters go on where another agent of the process has registered
// them, for a phase of the agent that ends is followed by the next one.
type counters struct {
	applies, repairs, deletions, events *prometheus.CounterVec
	evictions                           *prometheus.CounterVec
	seconds                             *prometheus.HistogramVec
	arrival                             prometheus.Histogram
}

// newCounters makes the counters known to registerer; nil registers nothing.
func newCounters(registerer prometheus.Registerer) (*counters, error) {
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
	}
	c := &counters{
		applies: counter("spokelet_work_applies_total", "Manifests that were compared with the spoke by a request and are "+
			"then applied, or could not be.", labelResult),
		repairs: counter("spokelet_work_repairs_total", "Objects that were put right after another client had changed or "+
			"deleted them on the spoke, by what was done.", labelAction),
		deletions: counter("spokelet_work_deletions_total", "Requests to delete an object of a work: it was gone at once, "+
			"is held by a finalizer or its grace, or the request failed.", labelResult),
		evictions: counter("spokelet_work_evictions_total", "AppliedManifestWorks without a work whose grace began or "+
			"ended, or whose work came back.", labelState),
		events: counter("spokelet_work_events_total", "Events for the hub, by their reason: sent, dropped because there "+
			"were too many, or refused by the hub.", labelReason, labelResult),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "spokelet_work_pass_seconds", Help: "How long one look at one work took, by what it was about.",
			Buckets: []float64{.001, .005, .01, .05, .1, .5, 1, 5, 15},
		}, []string{labelPhase}),
		arrival: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "spokelet_work_write_to_applied_seconds", Help: "How long it took from the write of a work on the hub, " +
				"whose clock has whole seconds, until all its manifests were applied.",
			Buckets: []float64{1, 2, 5, 10, 30, 60, 300, 900, 3600, 21600, 86400},
		}),
	}
	var err error
	for _, vector := range []**prometheus.CounterVec{&c.applies, &c.repairs, &c.deletions, &c.evictions, &c.events} {
		if *vector, err = reconcile.RegisterMetric(registerer, *vector); err != nil {
			return nil, fmt.Errorf("registering the metrics of works: %w", err)
		}
	}
	if c.seconds, err = reconcile.RegisterMetric(registerer, c.seconds); err != nil {
		return nil, fmt.Errorf("registering the metrics of works: %w", err)
	}
	if c.arrival, err = reconcile.RegisterMetric(registerer, c.arrival); err != nil {
		return nil, fmt.Errorf("registering the metrics of works: %w", err)
	}
	// An increase is seen from a value on, and the first repair is one.
	for _, action := range apply.Repairs() {
		c.repairs.WithLabelValues(action)
	}
	return c, nil
}

// The methods below count one thing each; nil counters do nothing.

func (c *counters) apply(err error) {
	switch {
	case c == nil:
	case err != nil:
		c.applies.WithLabelValues(applyFailed).Inc()
	default:
		c.applies.WithLabelValues(applySucceeded).Inc()
	}
}

func (c *counters) repair(action string) {
	if c != nil {
		c.repairs.WithLabelValues(action).Inc()
	}
}

func (c *counters) deletion(result prune.Result) {
	if c != nil {
		c.deletions.WithLabelValues(string(result)).Inc()
	}
}

func (c *counters) eviction(state string) {
	if c != nil {
		c.evictions.WithLabelValues(state).Inc()
	}
}

func (c *counters) event(reason, result string) {
	if c != nil {
		c.events.WithLabelValues(reason, result).Inc()
	}
}

func (c *counters) pass(p phase, took time.Duration) {
	if c != nil {
		c.seconds.WithLabelValues(p.String()).Observe(took.Seconds())
	}
}

func (c *counters) arrived(took time.Duration) {
	if c != nil {
		c.arrival.Observe(took.Seconds())
	}
}

// gauges collects how much there is: works, objects, watches, objects that are overdue for deletion, and
// AppliedManifestWorks without a work. It is registered for as long as the agent serves.
type gauges struct {
	registerer prometheus.Registerer
	store      *watch.Store
	notes      *notes
	// list lists the AppliedManifestWorks of the agent from a cache, and applied does so while it is registered.
	list    func(context.Context) ([]workv1.AppliedManifestWork, error)
	applied func() ([]workv1.AppliedManifestWork, error)

	works, objects, watches, blocked, unowned *prometheus.Desc
}

// newGauges returns the gauges of a store and its notes.
func newGauges(
	registerer prometheus.Registerer, s *watch.Store, n *notes,
	list func(context.Context) ([]workv1.AppliedManifestWork, error),
) *gauges {
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc(name, help, labels, nil)
	}
	return &gauges{
		registerer: registerer, store: s, notes: n, list: list,
		works: desc("spokelet_work_works", "Works with objects on the spoke, and AppliedManifestWorks that are being "+
			"taken down without one.", labelState),
		objects: desc("spokelet_work_objects", "Objects on the spoke that some work holds."),
		watches: desc("spokelet_work_watches", "Watches of a resource in a namespace: wanted, and of these refused by "+
			"the API server, or beyond as many as the agent may have and in no watch of all namespaces.", labelState),
		unowned: desc("spokelet_work_unowned", "AppliedManifestWorks whose work the hub does not have: their grace period "+
			"runs, or they are held until a person confirms; or the hub has an older content, and what it lacks is held.",
			labelState),
		blocked: desc("spokelet_work_deletion_blocked", "Objects that were told to go and are still there after a while."),
	}
}

// Start keeps the gauges registered until the context ends.
func (g *gauges) Start(ctx context.Context) error {
	g.applied = func() ([]workv1.AppliedManifestWork, error) { return g.list(ctx) }
	return keepRegistered(ctx, g.registerer, g)
}

// keepRegistered keeps a collector known to the registerer until the context ends. Where another agent of this process
// tells of its own works under the same names, that one goes on.
func keepRegistered(ctx context.Context, registerer prometheus.Registerer, collector prometheus.Collector) error {
	if err := registerer.Register(collector); err != nil {
		var taken prometheus.AlreadyRegisteredError
		if !errors.As(err, &taken) {
			return fmt.Errorf("registering the metrics of works: %w", err)
		}
		return nil
	}
	<-ctx.Done()
	registerer.Unregister(collector)
	return nil
}

// Describe lists the gauges.
func (g *gauges) Describe(to chan<- *prometheus.Desc) {
	for _, desc := range []*prometheus.Desc{g.works, g.objects, g.watches, g.blocked, g.unowned} {
		to <- desc
	}
}

// Collect sends their values.
func (g *gauges) Collect(to chan<- prometheus.Metric) {
	send := func(desc *prometheus.Desc, value int, labels ...string) {
		to <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, float64(value), labels...)
	}
	size := g.store.Size()
	send(g.works, size.Works, "live")
	send(g.works, size.Applied, "leaving")
	send(g.objects, size.Objects)
	send(g.watches, size.Wanted, "wanted")
	send(g.watches, size.Refused, "refused")
	send(g.watches, size.Beyond, "beyond")
	send(g.blocked, g.notes.blocked())
	if all, err := g.applied(); err == nil { // Otherwise the cache is not there yet.
		for state, count := range countUnowned(all) {
			send(g.unowned, count, state)
		}
	}
}

// countUnowned counts AppliedManifestWorks whose work the hub does not have, or in an older content, by their state.
func countUnowned(all []workv1.AppliedManifestWork) map[string]int {
	counts := map[string]int{"waiting": 0, "held": 0, "older": 0}
	for i := range all {
		applied := &all[i]
		switch {
		case !applied.DeletionTimestamp.IsZero():
		case inventory.IsHeld(applied):
			counts["held"]++
		case inventory.IsOlder(applied):
			counts["older"]++
		case applied.Status.EvictionStartTime != nil:
			counts["waiting"]++
		}
	}
	return counts
}

// listApplied lists the AppliedManifestWorks of this agent from the cache.
func (r *Reconciler) listApplied(ctx context.Context) ([]workv1.AppliedManifestWork, error) {
	var all workv1.AppliedManifestWorkList
	err := r.Spoke.GetCache().List(ctx, &all, client.UnsafeDisableDeepCopy)
	if err != nil {
		return nil, fmt.Errorf("listing the AppliedManifestWorks: %w", err)
	}
	others := func(a workv1.AppliedManifestWork) bool { return a.Spec.AgentID != r.AgentID }
	return slices.DeleteFunc(all.Items, others), nil
}
