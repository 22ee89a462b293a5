package configure

import (
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"

	"github.com/spokelet/spokelet/internal/gate"
	"github.com/spokelet/spokelet/internal/reconcile"
)

// noteDependencies says in condition Degraded which dependencies are not satisfied. An agent may write the condition,
// too: what has another reason is its own, and stays.
func (f facts) noteDependencies(conditions *[]metav1.Condition, now time.Time) {
	const kind = addonv1beta1.ManagedClusterAddOnConditionDegraded
	have := meta.FindStatusCondition(*conditions, kind)
	ours := have != nil && (have.Reason == gate.ReasonDependency || have.Reason == gate.ReasonRequiredDependency)
	switch {
	case f.undecoded != "", have != nil && !ours, !f.addOn.DeletionTimestamp.IsZero():
	case f.degraded.Reason != "":
		want := f.degraded
		want.Type, want.Status = kind, metav1.ConditionTrue
		reconcile.SetCondition(conditions, want, now)
	case ours:
		meta.RemoveStatusCondition(conditions, kind)
	}
}
