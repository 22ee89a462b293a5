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
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/spokelet/spokelet/internal/reconcile"
)

const (
	// copyDelay is how long after a pass its work is copied, so that many changes in a row make one copy, and copying is
	// in nobody's way.
	copyDelay = time.Second
	// copyPause is how long it takes until a copy that could not be written is tried again. It costs no request.
	copyPause = 5 * time.Minute
)

// copier writes the copies of works, as the hub's cache has them. It runs only while that is the truth.
type copier struct {
	*Reconciler
	// tidied tells that the copies of other hubs were removed.
	tidied bool
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

// Reconcile makes the copy of one work say what the work says.
func (k *copier) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	now := k.Clock.Now()
	return k.copy(ctx, req.Name, now).Settle(now)
}

// copy brings one copy to where it should be.
func (k *copier) copy(ctx context.Context, name string, now time.Time) reconcile.Outcome {
	switch disowned, closed := k.Cache.condition(); {
	case disowned:
		err := k.Cache.takeBackKey(ctx)
		if err == nil {
			log.FromContext(ctx).Info("the copies of works are given up, for one that is out of date cannot be removed")
		}
		return reconcile.FromError(err)
	case closed:
		return reconcile.Done()
	}
	work, applied, err := k.truth(ctx, name)
	switch {
	case err != nil:
		return reconcile.FromError(err)
	case work == nil || !work.DeletionTimestamp.IsZero():
		k.Cache.drop(name)
		return reconcile.Done()
	case k.memory.of(holder{name: name}).work.lag(work.UID, work.ResourceVersion, true, now):
		return reconcile.Waiting(now.Add(staleDelay))
	case applied == nil || !applied.DeletionTimestamp.IsZero():
		return reconcile.Done() // the pass that makes it anew comes here again
	}
	if err := k.recordGeneration(ctx, work, applied); err != nil {
		return reconcile.FromError(err)
	}
	short := *work
	short.Status = essence(&work.Status)
	label := labelOf(k.HubHash, k.Cluster, &short, applied.UID)
	if k.Cache.holds(label) {
		return reconcile.Done()
	}
	if err = k.Cache.ensureKey(ctx); err == nil {
		k.tidy(ctx)
		err = k.Cache.put(label, &short)
	}
	return k.settle(ctx, err, now)
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
	applied, err := readApplied(ctx, k.Spoke.GetClient(), appliedName(k.HubHash, name))
	return work, applied, err
}

// tidy removes the copies of other hubs once.
func (k *copier) tidy(ctx context.Context) {
	if !k.tidied {
		k.tidied = true
		k.Cache.keepOnly(ctx)
	}
}

// settle says what follows from an attempt to write. A disk that is full or cannot be written is told once, tried again
// now and then, and changes nothing else.
func (k *copier) settle(ctx context.Context, err error, now time.Time) reconcile.Outcome {
	logger := log.FromContext(ctx)
	var refused keyRefusedError
	var api apierrors.APIStatus
	switch {
	case errors.As(err, &refused):
		k.Cache.close()
		logger.Error(err, "works are not kept on disk")
		return reconcile.Done()
	case errors.As(err, &api):
		return reconcile.FromError(err)
	}
	if news := k.Cache.note(err); news && err != nil {
		logger.Error(err, "the copy of a work cannot be written; without it the work is not looked after when the agent "+
			"starts while the hub is away")
	} else if news {
		logger.Info("the copies of works can be written again")
	}
	if err != nil {
		return reconcile.Waiting(now.Add(copyPause))
	}
	return reconcile.Done()
}

// condition reports whether the key has to be taken back, and whether nothing is written any more.
func (c *Cache) condition() (disowned, closed bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.disowned, c.closed
}

// close ends all writing.
func (c *Cache) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
}

// note remembers how an attempt to write ended, and reports whether that is news.
func (c *Cache) note(err error) (news bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err != nil {
		c.failures++
	}
	news = c.ailing != (err != nil)
	c.ailing = err != nil
	return news
}
