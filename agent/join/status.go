package join

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"github.com/spokelet/spokelet/csr"
	"github.com/spokelet/spokelet/internal/reconcile"
)

// conclude returns the condition that is true after the pass; nil leaves it as it is. A certificate that is not stored
// is not called rotated.
func conclude(answer csr.Plan, actErr error) *metav1.Condition {
	switch {
	case actErr == nil:
		return answer.Condition
	case reconcile.IsLostRace(actErr):
		return nil
	}
	return csr.NotStored(actErr.Error())
}

// publish writes the condition to the ManagedCluster. While joining nobody may, and a ManagedCluster that is not there
// cannot be told anything.
func (r *Reconciler) publish(ctx context.Context, condition *metav1.Condition, now time.Time) error {
	if r.Joining || condition == nil {
		return nil
	}
	var before clusterv1.ManagedCluster
	switch err := r.Hub.GetClient().Get(ctx, types.NamespacedName{Name: r.Identity.Cluster}, &before); {
	case apierrors.IsNotFound(err):
		return nil
	case err != nil:
		return fmt.Errorf("reading ManagedCluster %s: %w", r.Identity.Cluster, err)
	}
	after := before.DeepCopy()
	reconcile.SetCondition(&after.Status.Conditions, *condition, now)
	_, err := reconcile.PatchStatus(ctx, r.Hub.GetClient(), &before, after)
	return err
}
