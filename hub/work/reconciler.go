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

// Reconciler deletes ManifestWorks that are complete when their time is over.
type Reconciler struct {
	// Works lists, watches and deletes ManifestWorks at the API server, without a cache.
	Works client.WithWatch
	// Clock tells the instant of a pass.
	Clock clock.PassiveClock
	// Workers is how many works are deleted at the same time.
	Workers int

	finished finishedWorks
}

// Reconcile deletes one work if its time is over, and otherwise comes back when it is.
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	now := r.Clock.Now()
	work, known := r.finished.Get(request.NamespacedName)
	switch {
	case !known:
		return reconcile.Done().Settle(now)
	case now.Before(work.due):
		return reconcile.Waiting(work.due).Settle(now)
	}
	return reconcile.FromError(r.remove(ctx, request.NamespacedName, work)).Settle(now)
}

// remove deletes a work if it is still as it was seen. When it is not, the watch brings it anew.
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
