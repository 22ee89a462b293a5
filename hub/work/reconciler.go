package work

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	workv1 "open-cluster-management.io/api/work/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/spokelet/spokelet/internal/reconcile"
)

// Reconciler deletes complete ManifestWorks when their time to live is over.
type Reconciler struct {
	// Works lists, watches and deletes ManifestWorks without a cache.
	Works client.WithWatch
	// OfAddOns reads the ManifestWorks of add-ons, which the cache of the manager has anyway.
	OfAddOns client.Reader
	// Clock is the clock of a pass.
	Clock clock.PassiveClock
	// Workers is how many works are deleted at the same time.
	Workers int

	finished finishedWorks
}

// Reconcile deletes one work if it is due, and otherwise returns when it is.
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	now := r.Clock.Now()
	work, known, err := r.observe(ctx, request.NamespacedName)
	switch {
	case err != nil:
		return reconcile.Retry(err).Settle(now)
	case !known:
		return reconcile.Done().Settle(now)
	case now.Before(work.due):
		return reconcile.Waiting(work.due).Settle(now)
	}
	return reconcile.FromError(r.remove(ctx, request.NamespacedName, work)).Settle(now)
}

// observe returns a work that is to be deleted; false when it stays.
func (r *Reconciler) observe(ctx context.Context, key types.NamespacedName) (finished, bool, error) {
	if work, known := r.finished.Get(key); known {
		return work, true, nil
	}
	work, err := reconcile.Peek(ctx, r.OfAddOns, key, &workv1.ManifestWork{})
	if err != nil || work == nil {
		return finished{}, false, err
	}
	if f := finishedOf(work); f != nil {
		return *f, true, nil
	}
	return finished{}, false, nil
}

// remove deletes a work if it is unchanged. If it has changed, the watch delivers it again.
func (r *Reconciler) remove(ctx context.Context, key types.NamespacedName, work finished) error {
	object := &workv1.ManifestWork{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}
	err := r.Works.Delete(ctx, object, client.Preconditions{UID: &work.uid, ResourceVersion: &work.version})
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("deleting the ManifestWork, which is complete: %w", err)
	}
	if err == nil {
		log.FromContext(ctx).Info("deleted the ManifestWork: it is complete, and its ttlSecondsAfterFinished is over",
			"due", work.due)
	}
	return nil
}
