package clusterset

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1beta2 "open-cluster-management.io/api/cluster/v1beta2"

	"github.com/spokelet/spokelet/internal/clustersets"
	"github.com/spokelet/spokelet/internal/reconcile"
)

const (
	reasonNoneMatched = "NoClusterMatched"
	reasonSelected    = "ClustersSelected"
	reasonInvalid     = "ClusterSelectorInvalid"
)

// decide returns the set as it has to be, with its status; nil means that nothing is written.
func decide(f facts) *clusterv1beta2.ManagedClusterSet {
	kept, keep := clustersets.Kept(f.name, f.set)
	switch {
	case f.set == nil && keep:
		return &clusterv1beta2.ManagedClusterSet{
			ObjectMeta: metav1.ObjectMeta{Name: f.name}, Spec: clusterv1beta2.ManagedClusterSetSpec{ClusterSelector: kept},
		}
	case f.set == nil || !f.set.DeletionTimestamp.IsZero():
		return nil
	}
	after := f.set.DeepCopy()
	if keep {
		after.Spec.ClusterSelector = kept
	}
	conclude(f, &after.Status)
	return after
}

// conclude sets the condition of a set. It has no observedGeneration, as with OCM, so that both write the same.
func conclude(f facts, status *clusterv1beta2.ManagedClusterSetStatus) {
	c := metav1.Condition{Type: clusterv1beta2.ManagedClusterSetConditionEmpty}
	switch {
	case f.invalid != nil:
		c.Status, c.Reason = metav1.ConditionUnknown, reasonInvalid
		c.Message = f.invalid.Error() + ". Correct it; until then placements that use the set keep their decisions"
	case f.clusters == 0:
		c.Status, c.Reason, c.Message = metav1.ConditionTrue, reasonNoneMatched, "No ManagedCluster selected"
	default:
		c.Status, c.Reason = metav1.ConditionFalse, reasonSelected
		c.Message = fmt.Sprintf("%d ManagedClusters selected", f.clusters)
	}
	reconcile.SetCondition(&status.Conditions, c, f.now)
}
