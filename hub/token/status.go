package token

import (
	"errors"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"

	"github.com/spokelet/spokelet/internal/reconcile"
	tokens "github.com/spokelet/spokelet/internal/token"
)

// takenRetry is the delay before a name that is taken is tried again: objects of others are not watched.
const takenRetry = time.Minute

// conclude returns the add-on with the condition of its infrastructure.
func conclude(f facts, p plan, done result) *addonv1beta1.ManagedClusterAddOn {
	after := f.addOn.DeepCopy()
	var condition *metav1.Condition
	switch {
	case p.intent == intentNone, reconcile.IsLostRace(done.err):
		return after // What it says is still what we know.
	case p.intent == intentRefuse:
		condition = tokens.NotReady(p.why)
	case p.intent == intentRemove && done.err == nil:
		// meta.RemoveStatusCondition would turn nil into an empty list, which is a difference.
		after.Status.Conditions = slices.DeleteFunc(after.Status.Conditions, func(c metav1.Condition) bool {
			return c.Type == tokens.ConditionInfrastructure
		})
		return after
	case p.intent == intentRemove:
		return after
	case done.err != nil:
		condition = tokens.NotReady(done.err.Error())
	default:
		condition = tokens.Ready(f.key.Namespace, f.key.Name, done.uid)
	}
	condition.ObservedGeneration = f.addOn.Generation
	if have := meta.FindStatusCondition(after.Status.Conditions, condition.Type); have != nil {
		// The condition does not depend on the spec, so a new generation alone is not a reason to write.
		condition.ObservedGeneration = have.ObservedGeneration
	}
	reconcile.SetCondition(&after.Status.Conditions, *condition, f.now)
	return after
}

// outcomeOf returns the outcome of a pass.
func outcomeOf(f facts, done result) reconcile.Outcome {
	var taken *takenError
	if errors.As(done.err, &taken) {
		return reconcile.Waiting(f.now.Add(takenRetry))
	}
	return reconcile.FromError(done.err)
}
