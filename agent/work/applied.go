package work

import (
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/internal/reconcile"
)

// ensureApplied makes or repairs the AppliedManifestWork and writes down which objects are about to be made, so that
// none of them is forgotten whatever happens next.
func (r *Reconciler) ensureApplied(ctx context.Context, f *facts, tasks []task) error {
	if f.applied == nil {
		if err := r.createApplied(ctx, f, tasks); err != nil {
			return err
		}
	} else if err := r.repairApplied(ctx, f, tasks); err != nil {
		return err
	}
	for i := range tasks {
		tasks[i].owner = ownerReference(f.applied.Name, f.applied.UID)
	}
	return nil
}

// createApplied makes the AppliedManifestWork of the work, with the intent.
func (r *Reconciler) createApplied(ctx context.Context, f *facts, tasks []task) error {
	name := appliedName(r.HubHash, f.work.Name)
	if wrong := nameFailure(f.work.Name, name); wrong != nil {
		return wrong
	}
	applied := &workv1.AppliedManifestWork{
		ObjectMeta: metav1.ObjectMeta{
			Name:       name,
			Finalizers: []string{names.FinalizerAppliedManifestWork},
		},
		Spec: r.appliedSpec(f),
	}
	copyLabels(applied, f.work.Labels)
	setGeneration(applied, f.work)
	intent, _ := widen(tasks, applied)
	setIntent(applied, intent)
	err := r.Spoke.GetClient().Create(ctx, applied)
	if apierrors.IsAlreadyExists(err) {
		live, err := readApplied(ctx, r.Spoke.GetAPIReader(), applied.Name)
		if err != nil {
			return err
		}
		if live != nil && live.DeletionTimestamp.IsZero() {
			f.applied = live
			return r.repairApplied(ctx, f, tasks)
		}
	}
	if err != nil {
		return fmt.Errorf("creating the AppliedManifestWork: %w", err)
	}
	r.wroteApplied(f, applied)
	if len(f.work.Status.Conditions) == 0 {
		r.memory.change(f.holder, func(k *recall) { k.fresh = applied.UID })
	}
	return nil
}

// appliedSpec is the spec of the AppliedManifestWork of the work.
func (r *Reconciler) appliedSpec(f *facts) workv1.AppliedManifestWorkSpec {
	return workv1.AppliedManifestWorkSpec{
		HubHash: r.HubHash, AgentID: r.AgentID, ManifestWorkName: f.work.Name,
	}
}

// repairApplied puts back the spec, the labels and the finalizer of the AppliedManifestWork and adds to its intent.
func (r *Reconciler) repairApplied(ctx context.Context, f *facts, tasks []task) error {
	after := f.applied.DeepCopy()
	after.Spec = r.appliedSpec(f)
	copyLabels(after, f.work.Labels)
	if !slices.Contains(after.Finalizers, names.FinalizerAppliedManifestWork) {
		after.Finalizers = append(after.Finalizers, names.FinalizerAppliedManifestWork)
	}
	if intent, wider := widen(tasks, f.applied); wider {
		setIntent(after, intent)
		if !f.offline {
			setGeneration(after, f.work) // for nothing in this write; otherwise the copier does it
		}
	}
	written, err := reconcile.PatchMain(ctx, r.Spoke.GetClient(), f.applied, after)
	if err != nil {
		return fmt.Errorf("preparing the AppliedManifestWork: %w", err)
	}
	if written {
		r.wroteApplied(f, after)
	}
	return nil
}

// publishUnlisted ends a pass that could not write down which objects it was about to make, without which it makes
// none. The work says so where somebody has to help.
func (r *Reconciler) publishUnlisted(ctx context.Context, f *facts, err error) reconcile.Outcome {
	applied, lasting := unlistedCondition(err)
	outcome := reconcile.Done()
	if !lasting {
		outcome = reconcile.FromError(err)
	}
	if applied == nil {
		return outcome
	}
	status := *f.work.Status.DeepCopy()
	setAt(&status.Conditions, *applied, f.work.Generation, f.now)
	return outcome.And(r.publishStatus(ctx, f, status))
}
