package deploy

import (
	"context"
	"errors"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/spokelet/spokelet/internal/message"
	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/internal/reconcile"
)

// actOnDeletion records failed and completed hooks first, then writes the works. Then it removes finalizers, or sets
// the conditions that explain what the add-on waits for.
func (r *Reconciler) actOnDeletion(
	ctx context.Context, f deletionFacts, p deletionPlan, err error,
) reconcile.Outcome {
	outcome := reconcile.Done()
	if p.waits {
		outcome = f.repeated().And(answered(f.registrationsErr, f.setupErr, f.renderErr))
	}
	if !p.wake.IsZero() {
		outcome = outcome.And(reconcile.Waiting(p.wake))
	}
	if err != nil {
		return outcome.And(reconcile.FromError(err))
	}
	before, err := r.recordAttempts(ctx, f, p)
	if err != nil {
		return outcome.And(reconcile.FromError(client.IgnoreNotFound(err)))
	}
	if err := errors.Join(runAll(ctx, r.workWriter(), p.works)...); err != nil {
		outcome = outcome.And(reconcile.FromError(err))
		if len(p.drop) > 0 {
			return outcome
		}
	}
	if len(p.drop) > 0 {
		_, err := r.AddOns.PatchAddOn(ctx, before, p.withoutFinalizers(before))
		if err == nil {
			r.recordFinalizersRemoved(ctx, f, p)
		}
		return outcome.And(reconcile.FromError(client.IgnoreNotFound(err)))
	}
	after := before.DeepCopy()
	for _, condition := range p.conditions {
		condition.Message = message.Cut(condition.Message, maxMessage)
		reconcile.SetCondition(&after.Status.Conditions, condition, f.now)
	}
	_, err = r.AddOns.PatchAddOnStatus(ctx, before, after)
	return outcome.And(reconcile.FromError(client.IgnoreNotFound(err)))
}

// recordAttempts records on the add-on which attempts of hooks failed, so that a restart counts none twice, or that
// they are done, so that none runs twice. It returns the add-on as it is then.
func (r *Reconciler) recordAttempts(
	ctx context.Context, f deletionFacts, p deletionPlan,
) (*addonv1beta1.ManagedClusterAddOn, error) {
	if p.attempts == "" {
		return f.addOn, nil
	}
	after := f.addOn.DeepCopy()
	metav1.SetMetaDataAnnotation(&after.ObjectMeta, names.AnnotationHookAttempts, p.attempts)
	if _, err := r.AddOns.PatchAddOn(ctx, f.addOn, after); err != nil {
		return nil, err
	}
	for _, failure := range p.failures {
		log.FromContext(ctx).Info("a pre-delete hook failed", "failure", failure)
		if r.Recorder != nil {
			r.Recorder.Eventf(f.addOn, nil, corev1.EventTypeWarning, eventHookFailed, "Delete", "%s", failure)
		}
	}
	return after, nil
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
