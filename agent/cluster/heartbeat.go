package cluster

import (
	"context"
	"fmt"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/spokelet/spokelet/lease"
)

// Heartbeat keeps the lease of the cluster on the hub fresh while the reconciler wants it. It runs beside the
// reconciler, as a Runnable of the manager.
type Heartbeat struct {
	// Leases is the client for the leases of the cluster's namespace on the hub.
	Leases lease.Leases
	// Cluster is the name of the cluster and of its namespace on the hub.
	Cluster string
	// Clock stamps the heartbeats; nil means the wall clock.
	Clock clock.Clock

	mu      sync.Mutex
	want    time.Duration
	cancel  context.CancelFunc
	renewed time.Time
	// stored is when the hub stored the last heartbeat, by its own clock; zero when it does not say.
	stored time.Time
	// failed is the first error of an unbroken row of heartbeats that the hub did not get; nil when it got the last one.
	failed  error
	awaited bool
	bell    bell
}

// Want sets the time between two heartbeats; zero means none. It returns at once.
func (h *Heartbeat) Want(period time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.want == period {
		return
	}
	h.want = period
	if h.cancel != nil {
		h.cancel()
	}
}

// Renewed returns when the hub stored the last heartbeat, by the clock of the hub where it says so; zero when there was
// none.
func (h *Heartbeat) Renewed() time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.stored.IsZero() {
		return h.stored
	}
	return h.renewed
}

// Await asks for a pass after the next heartbeat that the hub stores.
func (h *Heartbeat) Await() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.awaited = true
}

// Start implements manager.Runnable: it sends heartbeats as wanted until ctx ends.
func (h *Heartbeat) Start(ctx context.Context) error {
	for ctx.Err() == nil {
		if err := h.send(ctx); err != nil {
			return fmt.Errorf("sending the heartbeat of cluster %s: %w", h.Cluster, err)
		}
	}
	return nil
}

// send sends heartbeats until something else is wanted or ctx ends.
func (h *Heartbeat) send(ctx context.Context) error {
	h.mu.Lock()
	ctx, cancel := context.WithCancel(ctx)
	period := h.want
	h.cancel = cancel
	h.mu.Unlock()
	defer cancel()
	if period == 0 {
		<-ctx.Done()
		return nil
	}
	log.FromContext(ctx).WithName("heartbeat").Info("sending heartbeats", "period", period.String())
	renewer := lease.Renewer{
		Leases: storedLeases{Leases: h.Leases, note: h.note}, Namespace: h.Cluster, Name: lease.ClusterLease,
		Duration: period, Clock: h.Clock,
		Report: func(at time.Time, err error) { h.report(ctx, at, err) },
	}
	return renewer.Run(ctx)
}

// note remembers when the hub stored a heartbeat.
func (h *Heartbeat) note(at time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.stored = at
}

// storedLeases notes when the API server stored each heartbeat.
type storedLeases struct {
	lease.Leases
	note func(at time.Time)
}

// Update implements lease.Leases.
func (s storedLeases) Update(
	ctx context.Context, l *coordinationv1.Lease, opts metav1.UpdateOptions,
) (*coordinationv1.Lease, error) {
	after, err := s.Leases.Update(ctx, l, opts)
	if err == nil {
		s.note(lease.StoredAt(after))
	}
	return after, err
}

// report remembers how a heartbeat went. The first failure of a row is logged, and its end with the same error, so that
// a log that leaves out the one leaves out the other. The heartbeat that ends the row asks for a pass.
func (h *Heartbeat) report(ctx context.Context, at time.Time, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	logger := log.FromContext(ctx).WithName("heartbeat")
	if err != nil {
		if h.failed == nil {
			logger.Error(err, "the hub did not get a heartbeat, trying again")
			h.failed = err
		}
		return
	}
	if h.failed != nil {
		logger.Info("the hub gets heartbeats again", "after", h.failed)
	}
	if h.failed != nil || h.awaited || h.renewed.IsZero() {
		h.bell.Ring()
	}
	h.failed, h.awaited, h.renewed = nil, false, at
}
