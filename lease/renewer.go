package lease

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	"github.com/spokelet/spokelet/internal/pause"
)

const (
	// jitterFactor is the largest share by which the period is lengthened, so that the renewals of a fleet are spread.
	jitterFactor = 0.25
	// firstRetry is the pause after the first failed renewal; it doubles up to a quarter of the period.
	firstRetry = time.Second
	// maxRequest is the timeout of one renewal; a hung connection must not delay the next ones.
	maxRequest = 10 * time.Second
)

// Leases reads and writes the Leases of one namespace. The typed client of client-go is one:
// CoordinationV1Client.Leases(namespace).
type Leases interface {
	// Get reads one Lease.
	Get(ctx context.Context, name string, opts metav1.GetOptions) (*coordinationv1.Lease, error)
	// Create creates a Lease; it is only called by a Renewer with Create set.
	Create(ctx context.Context, l *coordinationv1.Lease, opts metav1.CreateOptions) (*coordinationv1.Lease, error)
	// Update replaces a Lease, guarded by its resourceVersion.
	Update(ctx context.Context, l *coordinationv1.Lease, opts metav1.UpdateOptions) (*coordinationv1.Lease, error)
}

// Renewer keeps one Lease fresh.
type Renewer struct {
	// Leases is the client for Namespace.
	Leases Leases
	// Namespace and Name identify the Lease.
	Namespace, Name string
	// Create makes the renewer create the Lease where it is missing and own its holder and duration, as add-ons do. When
	// false, only renewTime is ever written and a missing Lease is waited for, as the heartbeat of a cluster demands.
	Create bool
	// Holder is the holderIdentity of the Lease; empty means Name. It counts only with Create.
	Holder string
	// Owners are the owner references of a Lease that is created. They are used only with Create.
	Owners []metav1.OwnerReference
	// Duration is the time between two renewals; not positive means DefaultDuration. A hash of Namespace and Name
	// lengthens it by up to a quarter, the same after every restart.
	Duration time.Duration
	// Healthy are checks that must all pass before a renewal; the first error skips the renewal and is reported.
	Healthy []func(ctx context.Context) error
	// Report is called after each renewal, with nil when the Lease was renewed at that instant; it may be nil and must not
	// block.
	Report func(at time.Time, err error)
	// Clock is the clock; nil means the real clock.
	Clock clock.Clock
}

// Run renews the Lease until ctx ends, which is not an error. No answer of the API server ends it: a renewal that
// failed is reported and repeated within the period. The only error is a Renewer without a client or a name.
func (r *Renewer) Run(ctx context.Context) error {
	if r.Leases == nil || r.Name == "" {
		return errors.New("renewing a lease: a client and a name are needed")
	}
	b := renewLoop{Renewer: *r, period: r.period()}
	if b.Clock == nil {
		b.Clock = clock.RealClock{}
	}
	for ctx.Err() == nil {
		timer := b.Clock.NewTimer(b.step(ctx))
		select {
		case <-ctx.Done():
			timer.Stop()
		case <-timer.C():
		}
	}
	return nil
}

// step renews once, reports the result, and returns the pause before the next renewal.
func (b *renewLoop) step(ctx context.Context) time.Duration {
	started := b.Clock.Now()
	err := b.renew(ctx, started)
	if ctx.Err() != nil {
		return 0
	}
	if b.Report != nil {
		b.Report(started, err)
	}
	if err != nil {
		b.failures++
		return b.retry(b.failures - 1)
	}
	b.failures = 0
	return max(b.period-b.Clock.Since(started), 0)
}

// period is Duration with the share that belongs to this Lease.
func (r *Renewer) period() time.Duration {
	d := r.Duration
	if d <= 0 {
		d = DefaultDuration
	}
	d = min(d, maxDuration)
	return pause.Spread(d, jitterFactor, r.Namespace, r.Name)
}

// renewLoop is a running Renewer with the last answer of the server.
type renewLoop struct {
	Renewer
	period time.Duration
	// last is the answer of the server to the last renewal; nil when it is unknown.
	last *coordinationv1.Lease
	// failures is the number of failed renewals in a row.
	failures int
}

// renew renews the Lease once. If the last answer is outdated, it reads the Lease and writes again.
func (b *renewLoop) renew(ctx context.Context, now time.Time) error {
	ctx, cancel := context.WithTimeout(ctx, min(b.period, maxRequest))
	defer cancel()
	for _, healthy := range b.Healthy {
		if err := healthy(ctx); err != nil {
			return fmt.Errorf("lease %s/%s is not renewed, because a health check says: %w", b.Namespace, b.Name, err)
		}
	}
	remembered := b.last != nil
	err := b.write(ctx, now)
	if remembered && (apierrors.IsConflict(err) || apierrors.IsNotFound(err)) {
		err = b.write(ctx, now)
	}
	return err
}

// write updates the Lease and reads it first if the last answer is unknown. After a failure the last answer is unknown,
// because the update may have succeeded although its answer was lost.
func (b *renewLoop) write(ctx context.Context, now time.Time) error {
	if b.last == nil {
		have, err := b.Leases.Get(ctx, b.Name, metav1.GetOptions{})
		switch {
		case err == nil:
			b.last = have
		case apierrors.IsNotFound(err) && b.Create:
			return b.create(ctx, now)
		default:
			return fmt.Errorf("reading lease %s/%s: %w", b.Namespace, b.Name, err)
		}
	}
	next := b.last.DeepCopy()
	b.fill(&next.Spec, now)
	stored, err := b.Leases.Update(ctx, next, metav1.UpdateOptions{})
	if err != nil {
		b.last = nil
		return fmt.Errorf("renewing lease %s/%s: %w", b.Namespace, b.Name, err)
	}
	b.last = stored
	return nil
}

func (b *renewLoop) create(ctx context.Context, now time.Time) error {
	fresh := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{
		Namespace: b.Namespace, Name: b.Name, OwnerReferences: b.Owners,
	}}
	b.fill(&fresh.Spec, now)
	stored, err := b.Leases.Create(ctx, fresh, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("creating lease %s/%s: %w", b.Namespace, b.Name, err)
	}
	b.last = stored
	return nil
}

// fill sets the fields that this renewer owns.
func (b *renewLoop) fill(spec *coordinationv1.LeaseSpec, now time.Time) {
	renewed := metav1.NewMicroTime(now)
	spec.RenewTime = &renewed
	if !b.Create {
		return
	}
	holder := b.Holder
	if holder == "" {
		holder = b.Name
	}
	seconds := b.Duration
	if seconds <= 0 {
		seconds = DefaultDuration
	}
	whole := int32(min(max(seconds/time.Second, 1), math.MaxInt32))
	spec.HolderIdentity, spec.LeaseDurationSeconds = &holder, &whole
}

// retry returns the pause after a number of failed renewals in a row, spread like the period.
func (b *renewLoop) retry(failures int) time.Duration {
	g := pause.Growing{First: firstRetry, Last: b.period / 4}
	return pause.Spread(g.Next(g.After(failures)), jitterFactor, b.Namespace, b.Name)
}
