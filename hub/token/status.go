package token

import (
	"context"
	"errors"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"

	"github.com/spokelet/spokelet/internal/reconcile"
	tokens "github.com/spokelet/spokelet/internal/token"
)

// takenLook is when a name that somebody else has taken is looked at again: objects of others are not watched.
const takenLook = time.Minute

// conclude returns the add-on with the condition that says how its infrastructure is.
func conclude(f facts, p plan, done result) *addonv1beta1.ManagedClusterAddOn {
	after := f.addOn.DeepCopy()
	var condition *metav1.Condition
	switch {
	case p.intent == intentNone, reconcile.IsLostRace(done.err):
		return after // What it says is still what we know.
	case p.intent == intentRefuse:
		condition = tokens.NotReady(p.why)
	case p.intent == intentRemove && done.err == nil:
		// Not meta.RemoveStatusCondition, which makes an empty list of what was none.
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
		// Nothing in the spec has a part in this, so a new generation is no reason to write.
		condition.ObservedGeneration = have.ObservedGeneration
	}
	reconcile.SetCondition(&after.Status.Conditions, *condition, f.now)
	return after
}

// publish writes the condition if it changed.
func (r *Reconciler) publish(ctx context.Context, f facts, p plan, done result) reconcile.Outcome {
	if f.addOn == nil {
		return reconcile.Done()
	}
	_, err := r.AddOns.PatchAddOnStatus(ctx, f.addOn, conclude(f, p, done))
	return reconcile.FromError(err)
}

// settle says how a pass ends.
func settle(f facts, done result) reconcile.Outcome {
	var taken *takenError
	if errors.As(done.err, &taken) {
		return reconcile.Waiting(f.now.Add(takenLook))
	}
	return reconcile.FromError(done.err)
}
