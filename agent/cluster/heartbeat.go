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

// Heartbeat renews the lease of the cluster on the hub with the period that the reconciler sets. It is a Runnable of
// the manager.
type Heartbeat struct {
	// Leases is the client for the leases of the cluster's namespace on the hub.
	Leases lease.Leases
	// Cluster is the name of the cluster and of its namespace on the hub.
	Cluster string
	// Clock stamps the heartbeats; nil means the real clock.
	Clock clock.Clock
	// OnFailure is called with why heartbeats fail, and with an empty text when they succeed again. Optional; it must not
	// block.
	OnFailure func(text string)

	mu      sync.Mutex
	period  time.Duration
	cancel  context.CancelFunc
	renewed time.Time
	// stored is the time at which the hub stored the last heartbeat, by its own clock; zero when it is unknown.
	stored time.Time
	// failed is the error of the first of the heartbeats that failed in a row; nil when the last one succeeded.
	failed  error
	awaited bool
	trigger trigger
}

// SetPeriod sets the time between two heartbeats; zero means none. It returns at once.
func (h *Heartbeat) SetPeriod(period time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.period == period {
		return
	}
	h.period = period
	if h.cancel != nil {
		h.cancel()
	}
}

// Renewed returns the time at which the hub stored the last heartbeat, by the clock of the hub if it is known; zero
// when there was none.
func (h *Heartbeat) Renewed() time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.stored.IsZero() {
		return h.stored
	}
	return h.renewed
}

// NotifyNext requests a pass after the next heartbeat that the hub stores.
func (h *Heartbeat) NotifyNext() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.awaited = true
}

// Start implements manager.Runnable: it sends heartbeats until ctx ends.
func (h *Heartbeat) Start(ctx context.Context) error {
	for ctx.Err() == nil {
		if err := h.send(ctx); err != nil {
			return fmt.Errorf("sending the heartbeat of cluster %s: %w", h.Cluster, err)
		}
	}
	return nil
}

// send sends heartbeats until the period changes or ctx ends.
func (h *Heartbeat) send(ctx context.Context) error {
	h.mu.Lock()
	ctx, cancel := context.WithCancel(ctx)
	period := h.period
	h.cancel = cancel
	h.mu.Unlock()
	defer cancel()
	if period == 0 {
		h.forget()
		<-ctx.Done()
		return nil
	}
	log.FromContext(ctx).WithName("heartbeat").Info("sending heartbeats", "period", period.String())
	renewer := lease.Renewer{
		Leases: storedLeases{Leases: h.Leases, stored: h.setStored}, Namespace: h.Cluster, Name: lease.ClusterLease,
		Duration: period, Clock: h.Clock,
		Report: func(at time.Time, err error) { h.report(ctx, at, err) },
	}
	return renewer.Run(ctx)
}

// setStored records the time at which the hub stored a heartbeat.
func (h *Heartbeat) setStored(at time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.stored = at
}

// storedLeases reports the time at which the API server stored each heartbeat.
type storedLeases struct {
	lease.Leases
	stored func(at time.Time)
}

// Update implements lease.Leases.
func (s storedLeases) Update(
	ctx context.Context, l *coordinationv1.Lease, opts metav1.UpdateOptions,
) (*coordinationv1.Lease, error) {
	after, err := s.Leases.Update(ctx, l, opts)
	if err == nil {
		s.stored(lease.StoredAt(after))
	}
	return after, err
}

// report records the result of a heartbeat. It logs the first of several failures, and the first success after them
// with the same error, so that a filter on the error drops both lines. That success requests a pass.
func (h *Heartbeat) report(ctx context.Context, at time.Time, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	logger := log.FromContext(ctx).WithName("heartbeat")
	if err != nil {
		if h.failed == nil {
			logger.Error(err, "the hub did not get a heartbeat, trying again")
			h.failed = err
			h.tell("the hub does not take heartbeats: " + err.Error())
		}
		return
	}
	if h.failed != nil {
		h.tell("")
		logger.Info("the hub gets heartbeats again", "after", h.failed)
	}
	if h.failed != nil || h.awaited || h.renewed.IsZero() {
		h.trigger.Fire()
	}
	h.failed, h.awaited, h.renewed = nil, false, at
}

// forget drops the failure of heartbeats that are not sent any more.
func (h *Heartbeat) forget() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.failed != nil {
		h.failed = nil
		h.tell("")
	}
}

func (h *Heartbeat) tell(text string) {
	if h.OnFailure != nil {
		h.OnFailure(text)
	}
}
