package work

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

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
