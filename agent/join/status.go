package join

import (
	"context"
	"errors"
	"fmt"
	"strings"
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

// publish writes the condition to the ManagedCluster. The bootstrap credential is not allowed to, so nothing is written
// while joining or when the ManagedCluster does not exist.
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

// progress says in words for people what the joining waits for: what went wrong, else why there is no certificate, else
// whose turn it is.
func progress(cluster string, plan csr.Plan, failures ...error) string {
	if err := errors.Join(failures...); err != nil && !reconcile.IsLostRace(err) {
		return strings.ReplaceAll(err.Error(), "\n", "; ")
	}
	if plan.Condition != nil && plan.Condition.Status == metav1.ConditionFalse {
		return plan.Condition.Message
	}
	if plan.Step == csr.StepTake {
		return "the hub issued the certificate of cluster " + cluster
	}
	return "waiting until the hub approves the certificate request of cluster " + cluster
}
