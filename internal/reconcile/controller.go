package reconcile

import (
	"time"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

const (
	// firstBackoff is the first pause after a failed pass; it doubles.
	firstBackoff = 20 * time.Millisecond
	// lastBackoff is the longest that a failed pass waits, so that a repaired cause is noticed within it.
	lastBackoff = time.Minute
)

// Options returns the controller options that all our controllers share: the number of workers, and a back-off from
// 20 ms to one minute. The name check is off because one process may serve several clusters, as tests do.
func Options(workers int) controller.Options {
	unchecked := true
	return controller.Options{
		MaxConcurrentReconciles: workers,
		SkipNameValidation:      &unchecked,
		RateLimiter: workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](
			firstBackoff, lastBackoff),
	}
}
