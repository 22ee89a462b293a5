package setbinding

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1beta2 "open-cluster-management.io/api/cluster/v1beta2"

	"github.com/spokelet/spokelet/internal/clustersets"
	"github.com/spokelet/spokelet/internal/reconcile"
)

// The first two reasons are those of OCM, see docs/reference/conditions.md.
const (
	reasonBound       = "ClusterSetBound"
	reasonNotFound    = "ClusterSetNotFound"
	reasonAnotherName = "BindingNameMismatch"
)

// conclude sets the condition Bound. Programs that ask which sets a namespace may use look at nothing else, such as the
// placement controller of OCM.
func conclude(f facts, status *clusterv1beta2.ManagedClusterSetBindingStatus) {
	name := f.binding.Spec.ClusterSet
	c := metav1.Condition{
		Type: clusterv1beta2.ClusterSetBindingBoundType, ObservedGeneration: f.binding.Generation,
		Status: metav1.ConditionTrue, Reason: reasonBound,
		Message: fmt.Sprintf("ManagedClusterSet %s is bound to namespace %s", name, f.binding.Namespace),
	}
	switch clustersets.StateOf(f.binding, f.exists) {
	case clustersets.AnotherName:
		c.Status, c.Reason = metav1.ConditionFalse, reasonAnotherName
		c.Message = fmt.Sprintf("A binding has the name of its set: delete this one, and create %s for ManagedClusterSet %s",
			name, name)
	case clustersets.NotFound:
		c.Status, c.Reason = metav1.ConditionFalse, reasonNotFound
		c.Message = fmt.Sprintf("ManagedClusterSet %s does not exist: create it, or delete this binding", name)
	case clustersets.Bound:
	}
	reconcile.SetCondition(&status.Conditions, c, f.now)
}
