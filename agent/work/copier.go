package work

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	workv1 "open-cluster-management.io/api/work/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/spokelet/spokelet/agent/work/inventory"
	"github.com/spokelet/spokelet/agent/work/offline"
	"github.com/spokelet/spokelet/agent/work/watch"
	"github.com/spokelet/spokelet/internal/reconcile"
)

const (
	// copyDelay is how long after a pass its work is copied, so that many changes in a row make one copy, and copying does
	// not delay a pass.
	copyDelay = time.Second
	// copyPause is how long it takes until a copy that could not be written is tried again. It costs no request.
	copyPause = 5 * time.Minute
)

// copier writes the copies of works, as the hub's cache has them. It runs only while that is complete.
type copier struct {
	*Reconciler
}

// setupCopier registers the controller that writes copies. Its queue exists before it starts, for passes fill it.
func (r *Reconciler) setupCopier(mgr ctrl.Manager) error {
	options := reconcile.Options(1)
	r.queues.copies = workqueue.NewTypedRateLimitingQueue(options.RateLimiter)
	options.NewQueue = func(string, workqueue.TypedRateLimiter[ctrl.Request],
	) workqueue.TypedRateLimitingInterface[ctrl.Request] {
		return r.queues.copies
	}
	nothing := source.Func(func(context.Context, workqueue.TypedRateLimitingInterface[ctrl.Request]) error { return nil })
	err := ctrl.NewControllerManagedBy(mgr).Named("agent.work.copies").WithOptions(options).
		WatchesRawSource(nothing).Complete(&copier{Reconciler: r})
	if err != nil {
		return fmt.Errorf("setting up agent.work.copies: %w", err)
	}
	return nil
}

// Reconcile brings the copy of one work up to date.
func (k *copier) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	now := k.Clock.Now()
	return k.copy(ctx, req.Name, now).Settle(now)
}

// copy brings one copy up to date.
func (k *copier) copy(ctx context.Context, name string, now time.Time) reconcile.Outcome {
	if active, err := k.Cache.Active(ctx); err != nil || !active {
		return reconcile.FromError(err)
	}
	work, applied, err := k.truth(ctx, name)
	switch {
	case err != nil:
		return reconcile.FromError(err)
	case work == nil || !work.DeletionTimestamp.IsZero():
		k.Cache.Delete(name)
		return reconcile.Done()
	case k.lags(work, applied, now):
		return reconcile.Waiting(now.Add(staleDelay))
	case applied == nil || !applied.DeletionTimestamp.IsZero():
		return reconcile.Done() // the pass that creates it again enqueues the work again
	case inventory.Outdated(applied, work) != "":
		// The cache may be behind. What is recorded is the proof of that, so only a pass that asked the hub changes it, and
		// it enqueues the work again.
		return reconcile.Done()
	}
	f := &facts{owner: watch.Owner{Name: name}, applied: applied}
	written, err := k.inventory.RecordGeneration(ctx, applied, work)
	k.wroteApplied(f, written)
	if err != nil {
		return reconcile.FromError(err)
	}
	err = k.Cache.Sync(ctx, work, applied.UID)
	if errors.As(err, &offline.DiskError{}) {
		return reconcile.Waiting(now.Add(copyPause))
	}
	return reconcile.FromError(err)
}

// lags reports whether a cache has not seen the last write of this process to the work or its AppliedManifestWork.
func (k *copier) lags(work *workv1.ManifestWork, applied *workv1.AppliedManifestWork, now time.Time) bool {
	known := k.notes.of(watch.Owner{Name: work.Name})
	return known.work.lag(work.UID, work.ResourceVersion, true, now) || applied != nil &&
		known.applied.lag(applied.UID, applied.ResourceVersion, !applied.DeletionTimestamp.IsZero(), now)
}

// truth reads the work and its AppliedManifestWork from the caches; nil means that there is none.
func (k *copier) truth(ctx context.Context, name string) (*workv1.ManifestWork, *workv1.AppliedManifestWork, error) {
	work := &workv1.ManifestWork{}
	err := k.Hub.GetClient().Get(ctx, types.NamespacedName{Namespace: k.Cluster, Name: name}, work)
	if apierrors.IsNotFound(err) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, fmt.Errorf("reading the ManifestWork %s: %w", name, err)
	}
	applied, err := inventory.Read(ctx, k.inventory.Client, k.inventory.Name(name))
	return work, applied, err
}

// copyMetrics keeps the metrics of the copies registered while the phase of the agent lasts.
func (r *Reconciler) copyMetrics() manager.RunnableFunc {
	return func(ctx context.Context) error {
		return keepRegistered(ctx, r.Metrics, offline.NewCollector(r.Cache, r.offline))
	}
}

// invalidateCopy deletes the copy of a work that is deleted or gone, or that has a new generation, before the pass acts
// on that. One that knows more than the hub stays, see recordGeneration.
func (r *Reconciler) invalidateCopy(f *facts, phase phase) {
	switch {
	case r.Cache == nil || f.offline || f.copyKnowsMore():
	case phase == phaseApply || phase == phaseRestart:
		r.Cache.Invalidate(f.work.Name, f.work.UID, f.work.Generation)
	case phase != phaseStale && phase != phaseKeep:
		r.Cache.Delete(f.owner.Name)
	}
}

// enqueueCopy makes the copier copy a work a moment after its pass. While the hub does not know what was learned
// without it, the former copy is the only one that does.
func (r *Reconciler) enqueueCopy(f *facts, phase phase) {
	if r.Cache != nil && phase == phaseApply && !f.copyKnowsMore() {
		r.queues.copies.AddAfter(r.request(f.owner.Name), copyDelay)
	}
}
