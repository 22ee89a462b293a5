package deploy

import (
	"context"
	"errors"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/spokelet/spokelet/internal/reconcile"
)

// actOnDeletion writes the works first. Then it removes finalizers, or sets the conditions that explain what the add-on
// waits for.
func (r *Reconciler) actOnDeletion(ctx context.Context, f deletionFacts, p deletionPlan) reconcile.Outcome {
	outcome := reconcile.Done()
	if !p.wake.IsZero() {
		outcome = reconcile.Waiting(p.wake)
	}
	var steps []workStep
	if p.create != nil {
		steps = append(steps, workStep{Verb: reconcile.Create, After: p.create})
	}
	for _, work := range p.remove {
		steps = append(steps, workStep{Verb: reconcile.Delete, Before: work})
	}
	if err := errors.Join(runAll(ctx, r.workWriter(), steps)...); err != nil {
		outcome = outcome.And(reconcile.FromError(err))
		if len(p.remove) > 0 {
			return outcome
		}
	}
	if len(p.drop) > 0 {
		_, err := r.AddOns.PatchAddOn(ctx, f.addOn, p.withoutFinalizers(f.addOn))
		if err == nil {
			r.recordFinalizersRemoved(ctx, f, p)
		}
		return outcome.And(reconcile.FromError(client.IgnoreNotFound(err)))
	}
	after := f.addOn.DeepCopy()
	for _, condition := range p.conditions {
		condition.Message = truncate(condition.Message)
		reconcile.SetCondition(&after.Status.Conditions, condition, f.now)
	}
	_, err := r.AddOns.PatchAddOnStatus(ctx, f.addOn, after)
	return outcome.And(reconcile.FromError(client.IgnoreNotFound(err)))
}

// recordFinalizersRemoved records an Event on the add-on about the removed finalizers and the reason.
func (r *Reconciler) recordFinalizersRemoved(ctx context.Context, f deletionFacts, p deletionPlan) {
	because := strings.Join(p.because, " ")
	log.FromContext(ctx).Info("removed finalizers", "finalizers", p.drop, "because", because)
	if r.Recorder == nil {
		return
	}
	kind, reason := corev1.EventTypeNormal, eventFinalizersRemoved
	if p.skipped {
		kind, reason = corev1.EventTypeWarning, eventHookSkipped
	}
	r.Recorder.Eventf(f.addOn, nil, kind, reason, "Delete", "Removed %s. %s", strings.Join(p.drop, ", "), because)
}
